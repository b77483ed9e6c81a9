//! Tests for the whole language: recorded instructions, and rejected kernels.

use super::*;
use crate::record::{Host, RecordError, RecordOptions, Recording};
use tombolo_types::stream::{AtomicResult, Command, CtaStream, KernelClass, Op, Program};
use tombolo_types::{Order, Scope};

/// Device memory with two arrays of 1024 numbers, `a[i] = i` and `b`, and eight flags.
struct Device {
    memory: Memory,
    a: Array<i32>,
    b: Array<i32>,
    flags: Array<u32>,
    options: RecordOptions,
}

impl Device {
    fn new() -> Device {
        Device::with(Backing::Real)
    }

    fn with(backing: Backing) -> Device {
        let mut memory = Memory::new(backing);
        let a = memory.array("a", 1024, Scaling::Fixed);
        let b = memory.array("b", 1024, Scaling::Fixed);
        let flags = memory.flags("flags", 8, Scaling::Fixed);
        memory.fill(a, |index| index as i32);
        Device { memory, a, b, flags, options: RecordOptions::default() }
    }

    fn checked(mut self) -> Device {
        self.options.check_independence = true;
        self
    }

    fn launch(&self, ctas: u64, threads: u32, kernel: impl Fn(&mut Cta<'_>) + Sync) -> Result<Recording, RecordError> {
        let mut host = Host::new(&self.memory, &self.options);
        host.launch(Grid::new("kernel", ctas, threads), kernel)?;
        Ok(host.finish("test"))
    }

    fn cooperative(&self, ctas: u64, kernel: impl AsyncFn(&mut Cta<'_>)) -> Result<Recording, RecordError> {
        let mut host = Host::new(&self.memory, &self.options);
        host.launch_cooperative(Grid::new("kernel", ctas, 32), kernel)?;
        Ok(host.finish("test"))
    }

    /// Instructions recorded by a single warp.
    fn warp(&self, kernel: impl Fn(&mut Warp<'_>) + Sync) -> Vec<Op> {
        let recording = self.launch(1, 32, |cta| cta.each_warp(&kernel)).unwrap();
        stream(&recording, 0).ops
    }
}

fn stream(recording: &Recording, cta: u32) -> CtaStream {
    let mut stream = CtaStream::default();
    recording.cta(0, cta, &mut stream).unwrap();
    stream
}

/// A letter per instruction; a digit gives the distance of a wait in results.
fn letters(ops: &[Op]) -> String {
    let letter = |op: &Op| match op {
        Op::Compute { .. } => 'c',
        Op::Load { .. } => 'L',
        Op::Store { .. } => 'S',
        Op::Atomic { result: AtomicResult::Returned, .. } => 'A',
        Op::Atomic { result: AtomicResult::Discarded, .. } => 'R',
        Op::Fence { .. } => 'F',
        Op::Shared { .. } => 's',
        Op::Barrier => '|',
        Op::Use { distance } => char::from_digit(u32::from(*distance), 36).expect("a short distance"),
        Op::WaitUntil { .. } => 'W',
        Op::Signal { .. } => '!',
    };
    ops.iter().map(letter).collect()
}

fn message<T>(result: Result<T, RecordError>) -> String {
    result.map(|_| ()).unwrap_err().to_string()
}

const RELAXED: Order = Order::relaxed(Scope::Gpu);

#[test]
fn loads_do_not_block_and_the_first_use_does() {
    let device = Device::new();
    let ops = device.warp(|warp| {
        let i = warp.lane();
        let (x, y, z) = (warp.load(device.a, i), warp.load(device.a, i + 32), warp.load(device.a, i + 64));
        let sum = warp.compute(ComputeClass::Int, 1, x + z);
        warp.store(device.b, i, sum + y);
        warp.store(device.b, i + 32, sum + y);
    });
    assert_eq!(letters(&ops), "LLL31c2SS", "each load is waited for once, the oldest first");
    assert_eq!(device.memory.read(device.b, 5), 5 + 69 + 37);
}

#[test]
fn a_loaded_index_is_waited_for() {
    let device = Device::new();
    let ops = device.warp(|warp| {
        let i = warp.lane();
        let next = warp.load(device.a, i);
        let value = warp.load(device.a, next * 3);
        warp.store(device.b, i, value);
    });
    assert_eq!(letters(&ops), "L1L1S");
    assert_eq!(device.memory.read(device.b, 9), 27);
}

#[test]
fn a_branch_masks_lanes_and_is_skipped_where_none_is_on() {
    let device = Device::new();
    let ops = device.warp(|warp| {
        let i = warp.lane();
        let value = warp.load(device.a, i);
        warp.when_else(value.lt(4), |warp| warp.store(device.b, i, 1), |warp| warp.store(device.b, i, 2));
        warp.when(i.ge(32), |warp| warp.store(device.b, i, 9));
    });
    assert_eq!(letters(&ops), "L1cSSc");
    let written: Vec<_> = (0..6).map(|index| device.memory.read(device.b, index)).collect();
    assert_eq!(written, [1, 1, 1, 1, 2, 2]);
}

#[test]
fn a_partial_warp_has_only_its_threads_on() {
    let device = Device::new();
    let recording = device
        .launch(2, 40, |cta| {
            cta.each_warp(|warp| {
                let i = warp.global_thread();
                warp.store(device.b, i, i);
            });
        })
        .unwrap();
    let stream = stream(&recording, 1);
    let masks: Vec<_> = stream.accesses.iter().map(|access| access.mask.grains()).collect();
    assert_eq!(masks, [24, 8, 8], "threads 40 to 71 start in the middle of a line; 72 to 79 are a fourth");
}

#[test]
fn a_barrier_is_recorded_by_every_warp() {
    let device = Device::new();
    let recording = device
        .launch(1, 64, |cta| {
            let mut tile = cta.shared::<i32>(64);
            cta.each_warp(|warp| {
                let i = warp.thread();
                let value = warp.load(device.a, i);
                warp.store_shared(&mut tile, i, value);
            });
            cta.barrier();
            cta.each_warp(|warp| {
                let i = warp.thread();
                let mirrored = warp.load_shared(&tile, i * -1 + 63);
                warp.store(device.b, i, mirrored);
            });
        })
        .unwrap();
    let stream = stream(&recording, 0);
    assert_eq!(letters(&stream.ops), "L1s|sSL1s|sS");
    assert_eq!(stream.warps, [0..6, 6..12]);
    assert_eq!(device.memory.read(device.b, 0), 63);
}

#[test]
fn reductions_return_nothing_and_atomics_the_old_value() {
    let device = Device::new();
    let mut host = Host::new(&device.memory, &device.options);
    host.launch_ordered(Grid::new("kernel", 2, 32), |cta| {
        cta.each_warp(|warp| {
            let zero = Lanes::all(0);
            warp.reduce(Reduction::Max, device.b, zero + 1, warp.global_thread(), RELAXED);
            let ticket = warp.atomic(Reduction::Add, device.b, zero, 1, RELAXED);
            warp.store(device.b, ticket + 2, warp.global_thread());
            warp.compare_exchange(device.b, zero + 100, 0, 7 + warp.cta() as i32, RELAXED);
        });
    })
    .unwrap();
    let recording = host.finish("test");
    assert_eq!(letters(&stream(&recording, 0).ops), "RA1SA");
    let values: Vec<_> = [0, 1, 2, 65, 100].map(|index| device.memory.read(device.b, index)).into();
    assert_eq!(values, [64, 63, 0, 63, 7], "tickets follow CTA and lane");
}

#[test]
fn vectors_are_one_instruction() {
    let device = Device::new();
    let recording = device
        .launch(1, 32, |cta| {
            cta.each_warp(|warp| {
                let i = warp.lane();
                let [x, y, z, w] = warp.load_vector(device.a, i * 4);
                warp.store(device.b, i, x + y + z + w);
            });
        })
        .unwrap();
    let stream = stream(&recording, 0);
    assert_eq!((letters(&stream.ops).as_str(), stream.accesses.len()), ("L1S", 5));
    assert_eq!(device.memory.read(device.b, 2), 8 + 9 + 10 + 11);
}

#[test]
fn equal_launches_are_one_kernel() {
    let device = Device::new();
    let mut host = Host::new(&device.memory, &device.options);
    for offset in [0, 32, 0] {
        host.launch(Grid::new("kernel", 1, 32), |cta| {
            cta.each_warp(|warp| warp.store(device.b, warp.lane() + offset, 1));
        })
        .unwrap();
    }
    let recording = host.finish("test");
    assert_eq!((recording.kernels().len(), recording.commands().len()), (2, 3));
}

#[test]
fn a_wait_depends_on_the_store_that_satisfied_it() {
    let device = Device::new();
    let recording = device
        .cooperative(3, async |cta| {
            let me = u64::from(cta.index());
            if me < 2 {
                cta.wait_until(0, device.flags, me + 1, Order::acquire(Scope::Gpu), |flag| flag == 5).await;
            }
            cta.warp(0, |warp| {
                let first = Lanes::all(me as i32);
                let behind = warp.load(device.b, first + 1);
                warp.store(device.b, first, behind + 1);
                warp.fence(Order::release(Scope::Gpu));
                warp.store_ordered(device.flags, first, 5, Order::release(Scope::Gpu));
                warp.compute(ComputeClass::Int, 1, ());
            });
        })
        .unwrap();
    assert_eq!(device.memory.read(device.b, 0), 3, "CTA 2 ran first, CTA 0 last");
    let streams: Vec<_> = (0..3).map(|cta| stream(&recording, cta)).collect();
    let shapes: Vec<_> = streams.iter().map(|stream| letters(&stream.ops)).collect();
    assert_eq!(shapes, ["WL1SFSc", "WL1SFS!c", "L1SFS!c"]);
    let tokens: Vec<Vec<u32>> =
        streams.iter().map(|stream| stream.tokens.iter().map(|token| token.0).collect()).collect();
    assert_eq!(tokens, [vec![1], vec![0, 1], vec![0]]);
    assert_eq!(recording.kernels()[0].class, KernelClass::Cooperative);
}

#[test]
fn a_flag_set_before_the_kernel_is_a_load() {
    let device = Device::new();
    device.memory.write(device.flags, 0, 1);
    let wait = async |cta: &mut Cta<'_>| {
        cta.wait_until(0, device.flags, 0, Order::acquire(Scope::Sys), |flag| flag == 1).await;
    };
    assert_eq!(letters(&stream(&device.cooperative(1, wait).unwrap(), 0).ops), "L1");
}

#[test]
fn a_cta_may_wait_for_one_that_has_not_started() {
    let device = Device::new();
    let order = Order::release(Scope::Gpu);
    // CTA 1 sets its flag before its own first wait, which only CTA 0 can end.
    let recording = device.cooperative(2, async |cta: &mut Cta<'_>| {
        let me = u64::from(cta.index());
        let set = |warp: &mut Warp<'_>| warp.store_ordered(device.flags, Lanes::all(me as i32), 1, order);
        if me == 1 {
            cta.warp(0, set);
        }
        cta.wait_until(0, device.flags, 1 - me, RELAXED, |flag| flag == 1).await;
        if me == 0 {
            cta.warp(0, set);
        }
    });
    assert_eq!(recording.map(|_| ()).map_err(|error| error.to_string()), Ok(()));
}

#[test]
fn a_deadlock_names_the_cta_and_the_flag() {
    let device = Device::new();
    let crossed = async |cta: &mut Cta<'_>| {
        let me = cta.index();
        if me > 0 {
            cta.wait_until(0, device.flags, u64::from(3 - me), Order::acquire(Scope::Gpu), |flag| flag == 1).await;
            cta.warp(0, |warp| warp.store(device.flags, Lanes::all(me as i32), 1));
        }
    };
    assert_eq!(
        message(device.cooperative(3, crossed)),
        "kernel kernel is deadlocked: CTA 1 waits for flags[2], which holds 0"
    );
}

#[test]
fn streams_that_outgrow_the_host_end_the_launch() {
    let with = |memory| {
        let mut device = Device::new();
        device.options.memory = Some(memory);
        device
            .cooperative(2, async |cta: &mut Cta<'_>| {
                let me = u64::from(cta.index());
                for round in 1..=100 {
                    let turn = Lanes::all(me as i32);
                    cta.warp(0, |warp| warp.store_ordered(device.flags, turn, round, Order::release(Scope::Gpu)));
                    cta.wait_until(0, device.flags, 1 - me, RELAXED, |flag| flag >= round).await;
                }
            })
            .map(drop)
    };
    let refused = with(1 << 10).unwrap_err();
    assert!(matches!(refused, RecordError::Memory { needs, has: 1024, .. } if needs > 1024 && needs < 2048));
    let said = "kernel kernel needs more than 1 MiB of memory for its streams, and the host has 0 MiB";
    assert_eq!(refused.to_string(), said);
    with(1 << 20).unwrap();
}

#[test]
fn spinning_without_wait_until_is_an_error() {
    let device = Device::new();
    let spin = async |cta: &mut Cta<'_>| {
        cta.warp(0, |warp| {
            loop {
                let flag = warp.load(device.flags, Lanes::all(0));
                if warp.any(flag.eq(1)) {
                    break;
                }
            }
        });
    };
    let message = message(device.cooperative(1, spin));
    assert!(message.starts_with("kernel kernel, CTA 0: warp 0: loads one line"), "{message}");
}

#[test]
fn an_index_beyond_an_array_names_the_place() {
    let device = Device::new();
    let result = device.launch(2, 32, |cta| {
        cta.each_warp(|warp| {
            let last = warp.lane().eq(31).select(warp.lane() + 1000 * warp.cta() as i32, warp.lane());
            warp.load(device.a, last);
        });
    });
    assert_eq!(message(result), "kernel kernel, CTA 1: warp 0: a[1031..1031+1] is outside its 1024 elements");
}

#[test]
fn a_kernel_that_is_not_independent_is_found() {
    let device = Device::new().checked();
    let neighbours = device.launch(2, 32, |cta| {
        cta.each_warp(|warp| {
            let i = warp.global_thread();
            let behind = warp.load(device.b, i + 1);
            warp.store(device.b, i, behind);
        });
    });
    let message_ = message(neighbours);
    assert!(message_.contains("CTA 1: declared independent, but stores to b[32]"), "{message_}");
    let same = device.launch(2, 32, |cta| cta.each_warp(|warp| warp.store(device.b, warp.lane(), 1)));
    assert!(message(same).contains("stores to b[0]"));
    let mixed = device.launch(2, 32, |cta| {
        let how = if cta.index() == 0 { Reduction::Add } else { Reduction::Min };
        cta.each_warp(|warp| warp.reduce(how, device.b, warp.lane(), 1, RELAXED));
    });
    assert!(message(mixed).contains("reduces into b[0]"));
}

#[test]
fn an_independent_kernel_passes_the_check() {
    let device = Device::new().checked();
    let result = device.launch(4, 32, |cta| {
        cta.each_warp(|warp| {
            let own = warp.load(device.a, warp.lane());
            warp.store(device.b, warp.global_thread() + 32, own);
            warp.reduce(Reduction::Add, device.b, warp.lane(), own, RELAXED);
        });
    });
    assert!(result.is_ok());
    assert_eq!(device.memory.read(device.b, 3), 12);
}

#[test]
fn an_independent_kernel_may_not_see_an_atomics_result() {
    let device = Device::new();
    let result = device.launch(1, 32, |cta| {
        cta.each_warp(|warp| _ = warp.atomic(Reduction::Add, device.b, warp.lane(), 1, RELAXED));
    });
    assert!(message(result).contains("an atomic on b returns"));
}

#[test]
fn floats_are_added_in_the_order_of_ctas_and_lanes() {
    let mut device = Device::new();
    let sums = device.memory.array::<f32>("sums", 2, Scaling::Fixed);
    let mut host = Host::new(&device.memory, &device.options);
    host.launch_ordered(Grid::new("kernel", 2, 32), |cta| {
        cta.each_warp(|warp| {
            let terms = warp.lane().map(|lane| if lane == 0 { 1e8 } else { 1.0 });
            warp.add_in_order(sums, Lanes::all(1), terms, RELAXED);
        });
    })
    .unwrap();
    assert_eq!(letters(&stream(&host.finish("test"), 0).ops), "R");
    // Each 1 is lost when added to 100 million, where adjacent floats are 8 apart.
    assert_eq!(device.memory.to_vec(sums), [0.0, 2e8]);
    let result = device.launch(1, 32, |cta| {
        cta.each_warp(|warp| warp.add_in_order(sums, warp.lane() % 2, Lanes::all(1.0), RELAXED));
    });
    assert!(message(result).contains("sums is added to in order in a kernel declared independent"));
}

#[test]
fn floats_are_added_in_an_independent_kernel_where_no_other_cta_accesses_them() {
    let mut device = Device::new().checked();
    let sums = device.memory.array::<f32>("sums", 64, Scaling::Fixed);
    let add = |own: i32| {
        device.launch(2, 32, |cta| {
            let first = cta.index() as i32 * own;
            cta.each_warp(|warp| warp.add_alone(sums, warp.lane() + first, Lanes::all(0.5), RELAXED));
        })
    };
    assert!(add(32).is_ok());
    assert_eq!(device.memory.to_vec(sums), [0.5; 64]);
    assert!(message(add(31)).contains("declared independent, but stores to sums[31]"));
}

#[test]
fn the_host_may_copy_the_first_elements_of_an_array() {
    let device = Device::new();
    let mut host = Host::new(&device.memory, &device.options);
    host.copy_first_to_device(device.a, 3);
    host.copy_first_to_host(device.b, 1024);
    let copy = |array: Array<i32>, bytes, to_device| Command::Copy { address: array.address(0), bytes, to_device };
    assert_eq!(host.finish("test").commands(), [copy(device.a, 12, true), copy(device.b, 4096, false)]);
}

#[test]
fn a_run_of_addresses_alone_refuses_addresses_and_branches_from_data() {
    let device = Device::with(Backing::AddressOnly);
    let index = device.launch(1, 32, |cta| {
        cta.each_warp(|warp| {
            let next = warp.load(device.a, warp.lane());
            warp.load(device.b, next + 1);
        });
    });
    assert!(message(index).contains("an index of b depends"));
    let branch = device.launch(1, 32, |cta| {
        cta.each_warp(|warp| {
            let value = warp.load(device.a, warp.lane());
            warp.when(value.gt(0), |_| ());
        });
    });
    assert!(message(branch).contains("a branch depends"));
}

#[test]
fn a_grid_without_threads_is_refused() {
    let device = Device::new();
    assert_eq!(message(device.launch(0, 32, |_| ())), "kernel kernel cannot be launched: it has no thread");
    assert!(message(device.launch(1 << 40, 32, |_| ())).contains("2^31"));
}

#[test]
fn lanes_sum_over_groups_where_those_that_are_off_count_as_zero() {
    let device = Device::new();
    device.warp(|warp| {
        let lane = warp.lane();
        warp.when(lane.lt(10), |warp| {
            let sum = warp.sum_lanes(ComputeClass::Int, lane, 8);
            warp.store(device.b, lane, sum);
        });
    });
    assert_eq!([0, 7, 8, 9, 10].map(|at| device.memory.read(device.b, at)), [28, 28, 17, 17, 0]);
}

/// Instructions recorded by a single warp with stores to `marks`, an array with 70 one-byte elements.
fn byte_stores(kernel: impl Fn(&mut Warp<'_>, Array<bool>) + Sync) -> (String, Vec<u32>, Vec<bool>) {
    let mut device = Device::new();
    let marks: Array<bool> = device.memory.array("marks", 70, Scaling::Fixed);
    let recording = device.launch(1, 32, |cta| cta.each_warp(|warp| kernel(warp, marks))).unwrap();
    let CtaStream { ops, accesses, .. } = stream(&recording, 0);
    let of_stores = ops.iter().filter_map(|op| match op {
        Op::Store { accesses, .. } | Op::Atomic { accesses, .. } => Some(accesses.range()),
        _ => None,
    });
    let masks = of_stores.flat_map(|range| accesses[range].iter().map(|access| access.mask.0)).collect();
    let order = |op: &&Op| matches!(op, Op::Atomic { order, .. } if order.order() != Order::relaxed(Scope::Sys));
    assert_eq!(ops.iter().filter(order).count(), 0);
    (letters(&ops).replace('c', ""), masks, device.memory.to_vec(marks))
}

#[test]
fn bytes_stored_side_by_side_are_a_store_of_their_grains() {
    let (ops, masks, marks) = byte_stores(|warp, marks| warp.store(marks, warp.lane() + 4, true));
    assert_eq!((ops.as_str(), masks), ("S", vec![0b1_1111_1110]));
    assert!(marks.iter().zip(0..).all(|(mark, at)| *mark == (4..36).contains(&at)));
    let (ops, ..) = byte_stores(|warp, marks| warp.store(marks, Lanes::all(35) - warp.lane(), true));
    assert_eq!(ops, "S", "in any order");
}

#[test]
fn a_store_of_part_of_a_grain_is_performed_at_its_home() {
    let (ops, masks, _) = byte_stores(|warp, marks| warp.store(marks, warp.lane() + 1, true));
    assert_eq!((ops.as_str(), masks), ("R", vec![0b1_1111_1111]), "three bytes of the first grain, one of the last");
    let (ops, masks, marks) = byte_stores(|warp, marks| warp.store(marks, warp.lane() * 2, true));
    assert_eq!((ops.as_str(), masks), ("R", vec![0xffff]));
    assert!(marks.iter().zip(0..).all(|(mark, at)| *mark == (at % 2 == 0 && at < 64)));
    let (ops, ..) = byte_stores(|warp, marks| warp.store(marks, Lanes::all(7), true));
    assert_eq!(ops, "R", "all lanes store the same byte");
}

#[test]
fn what_lies_behind_the_last_byte_of_an_array_is_nobodys() {
    let (ops, masks, _) = byte_stores(|warp, marks| {
        warp.when(warp.lane().lt(2), |warp| warp.store(marks, warp.lane() + 68, true));
    });
    assert_eq!((ops.as_str(), masks), ("S", vec![1 << 17]));
    let (ops, ..) = byte_stores(|warp, marks| {
        warp.when(warp.lane().lt(1), |warp| warp.store(marks, warp.lane() + 68, true));
    });
    assert_eq!(ops, "R", "one of the two bytes there");
}

#[test]
fn atomics_take_no_bytes() {
    let mut device = Device::new();
    let marks: Array<u8> = device.memory.array("marks", 70, Scaling::Fixed);
    let result = device.cooperative(1, async |cta: &mut Cta<'_>| {
        cta.each_warp(|warp| _ = warp.exchange(marks, warp.lane(), 1, RELAXED));
    });
    assert!(message(result).contains("an atomic on marks, whose elements have 1 byte: 4 or more"));
}

#[test]
fn bytes_are_loaded_as_what_they_hold() {
    let mut device = Device::new();
    let bytes: Array<u8> = device.memory.array("bytes", 70, Scaling::Fixed);
    device.memory.fill(bytes, |at| (at + 200) as u8);
    device.warp(|warp| {
        let value = warp.load(bytes, warp.lane() + 30).cast::<i32>();
        warp.store(device.b, warp.lane(), value);
    });
    assert_eq!([0, 25, 26].map(|at| device.memory.read(device.b, at)), [230, 255, 0], "without a sign");
}
