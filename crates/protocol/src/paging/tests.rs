use super::*;
use crate::hmg::Hmg;
use crate::memory_side::MemorySide;
use crate::vi::ProtocolOptions;
use crate::viper::Viper;

pub(super) const A: ModuleId = ModuleId(0);
pub(super) const B: ModuleId = ModuleId(1);
pub(super) const C: ModuleId = ModuleId(2);

pub(super) fn set(modules: &[ModuleId]) -> ModuleSet {
    modules.iter().copied().collect()
}

fn at(module: ModuleId) -> Residence {
    Residence::at(Holder::Module(module), ModuleSet::only(module))
}

fn map(after: Residence, modules: &[ModuleId]) -> ChangeStep {
    ChangeStep::Map { after, modules: set(modules) }
}

fn steps(paging: Paging, now: Residence, wish: ChangeReason) -> Vec<ChangeStep> {
    paging.change(&now, wish, 3).expect("something is to be done").steps().collect()
}

#[test]
fn a_fault_moves_the_page_after_its_user_has_unmapped_it() {
    let fault = ChangeReason::Fault { module: B, wanted: AttemptedAccess::Load };
    let copy = ChangeStep::Copy { from: Holder::Module(A), to: Holder::Module(B) };
    let expected = [ChangeStep::Unmap(set(&[A])), ChangeStep::WriteBack(set(&[A])), copy, map(at(B), &[A, B])];
    assert_eq!(steps(Paging::default(), at(A), fault), expected);
    assert_eq!(Paging::default().change(&at(B), fault, 3), None, "it has come meanwhile");
}

#[test]
fn an_evicted_page_is_the_hosts_and_the_next_fault_brings_it_back() {
    let host = Residence::at(Holder::Host, ModuleSet::NONE);
    let evict = steps(Paging::default(), at(A), ChangeReason::Move { to: Holder::Host });
    assert_eq!(evict.last(), Some(&map(host, &[A])));
    let back = steps(Paging::default(), host, ChangeReason::Fault { module: C, wanted: AttemptedAccess::Store });
    assert_eq!(back, [ChangeStep::Copy { from: Holder::Host, to: Holder::Module(C) }, map(at(C), &[C])]);
}

#[test]
fn readers_have_copies_until_one_writes() {
    let paging = Paging { duplicates: true, ..Paging::default() };
    let read = ChangeReason::Fault { module: B, wanted: AttemptedAccess::Load };
    let copy = ChangeStep::Copy { from: Holder::Module(A), to: Holder::Module(B) };
    let shared = Residence { copies: set(&[B]), mapped: set(&[A, B]), ..at(A) };
    let expected = [ChangeStep::Unmap(set(&[A])), ChangeStep::WriteBack(set(&[A])), copy, map(shared, &[A, B])];
    assert_eq!(steps(paging, at(A), read), expected);
    assert_eq!(
        [A, B, C].map(|module| shared.access(module)),
        [PagePermission::Read, PagePermission::Read, PagePermission::None]
    );
    assert_eq!(shared.mapping(B), Some(Mapping::at(B, PagePermission::Read)));
    let third = steps(paging, shared, ChangeReason::Fault { module: C, wanted: AttemptedAccess::Load });
    assert_eq!(third.len(), 2, "nobody gives anything up: {third:?}");
    let write = steps(paging, shared, ChangeReason::Fault { module: B, wanted: AttemptedAccess::Store });
    assert_eq!(write, [ChangeStep::Unmap(set(&[A])), ChangeStep::WriteBack(set(&[A])), map(at(B), &[A, B])]);
    let home_writes = steps(paging, shared, ChangeReason::Fault { module: A, wanted: AttemptedAccess::Store });
    assert_eq!(home_writes, [ChangeStep::Unmap(set(&[B])), ChangeStep::WriteBack(set(&[B])), map(at(A), &[A, B])]);
}

#[test]
fn a_module_with_the_whole_page_is_its_home_before_any_map_message() {
    let paging = Paging { everybody: true, ..Paging::default() };
    let saw = Mapping::at(A, PagePermission::Write).unmapped();
    assert_eq!(paging.arrived(B, saw), Mapping::at(B, PagePermission::None));
    assert_eq!(saw.updated(None), saw, "who is told that the host has it sends what is left where it was");
}

#[test]
fn pages_move_beside_memory_alone() {
    assert!(pages_may_move(&MemorySide::<true>::new(ProtocolOptions::default())));
    assert!(!pages_may_move(&Hmg::<true>::new(ProtocolOptions::default())));
    let viper = Viper::<true>::new(ProtocolOptions::default());
    assert!(!pages_may_move(&viper), "its accesses meet in memory, behind its L2");
}

#[test]
fn with_remote_mapping_a_fault_unmaps_no_module() {
    let paging = Paging { on_fault: OnFault::MapRemotely, ..Paging::default() };
    let both = Residence { mapped: set(&[A, B]), ..at(A) };
    assert_eq!(
        steps(paging, at(A), ChangeReason::Fault { module: B, wanted: AttemptedAccess::Store }),
        [map(both, &[A, B])]
    );
    assert_eq!(both.mapping(B), Some(Mapping::at(A, PagePermission::Write)));
    let moved = steps(Paging { everybody: true, ..paging }, both, ChangeReason::Move { to: Holder::Module(C) });
    assert_eq!(moved[0], ChangeStep::Unmap(set(&[A, B])));
    assert_eq!(moved.last(), Some(&map(Residence::at(Holder::Module(C), set(&[A, B, C])), &[A, B, C])));
}

#[test]
fn a_broken_order_has_the_same_steps() {
    let fault = ChangeReason::Fault { module: B, wanted: AttemptedAccess::Store };
    let broken = |rule| steps(Paging { broken: Some(rule), ..Paging::default() }, at(A), fault);
    assert!(matches!(broken(BrokenPaging::CopiedEarly)[0], ChangeStep::Copy { .. }));
    assert!(matches!(broken(BrokenPaging::MappedEarly)[3], ChangeStep::Copy { .. }));
    assert_eq!(broken(BrokenPaging::StoresNotAwaited).len(), 4);
}
