//! Table II, cell by cell.

use super::world::{StepEffects, TestBytes, atomic, coherent_load, coherent_store, count, load, rules, store};
use crate::Refusal;
use crate::client_home::{BlockEvent, BlockRequest, Node, Nodes};
use crate::nmoesi::{ClientBlock, ClientState, Message, NmoesiOptions, Slot};
use tombolo_types::{Mask, ModuleId, Scope};

/// UMH's Table II as modelled: a client's messages, and its next state.
///
/// The number in brackets counts the bytes sent. Each block has four bytes, and in states N, M and O a single byte
/// has been written. If a cell has two states, the home's reply decides. `-` means nothing happens.
///
/// Another client's read reaches a client only if the home names it as owner. N and S never own a block: a read
/// there is an error. O does not exist without transfers between peers.
const TABLE: &str = "
  | load         | coherent load | store        | coherent store | atomic
N | hit          | Write, M      | hit          | Write, M       | Write, M
M | hit          | hit           | hit          | hit            | hit
O | hit          | Write, M      | hit          | Write, M       | Write, M
E | hit          | hit           | hit, M       | hit, M         | hit, M
S | hit          | Write, E      | hit, N       | Write, M       | Write, M
I | Read, S or E | Write, E      | Read, N or M | Write, M       | Write, M

  | eviction   | merge           | flush           | read, peer   | read, no peer | write
N | Back(1), I | Back(1), S or I | Back(1), S or I | never        | never         | Bytes(1), I
M | Back(1), I | -               | Back(1), S or I | Peer+Sent, O | Bytes(1), S   | Bytes(1), I
O | Back(1), I | Back(1), S or I | Back(1), S or I | Peer+Sent    | Bytes(1), S   | Bytes(1), I
E | I          | -               | -               | Peer+Sent, S | Bytes(0), S   | Bytes(0), I
S | I          | -               | -               | never        | never         | Bytes(0), I
I | -          | -               | -               | Refused      | Bytes(0)      | Bytes(0)
";

/// A column in the first part: a request from the client's own SMs.
type RequestColumn = (&'static str, fn() -> BlockRequest<TestBytes>);

const ASKED: [RequestColumn; 5] = [
    ("load", || load(1)),
    ("coherent load", || coherent_load(1)),
    ("store", || store(1, 9)),
    ("coherent store", || coherent_store(1, 9)),
    ("atomic", || atomic(1, 9)),
];

/// Columns in the second part: all other events at a client.
const MET: [(&str, BlockEvent<Message<TestBytes>, TestBytes>); 6] = [
    ("eviction", BlockEvent::Evict),
    ("merge", BlockEvent::Merge { all: false }),
    ("flush", BlockEvent::Merge { all: true }),
    ("read, peer", told(Message::Forward { to: ModuleId(1) })),
    ("read, no peer", told(Message::Share)),
    ("write", told(Message::Take)),
];

const fn told(message: Message<TestBytes>) -> BlockEvent<Message<TestBytes>, TestBytes> {
    BlockEvent::Message { from: Node::Home, message }
}

/// The location of the byte that a client has written.
#[derive(Clone, Copy)]
enum ByteLocation {
    InL2,
    InMemory,
}

fn block(state: ClientState, written: ByteLocation) -> ClientBlock<TestBytes> {
    let (first, all) = (Mask(1), TestBytes([1, 2, 3, 4]));
    let clean = ClientBlock { state, data: all, ..ClientBlock::default() };
    match (state, written) {
        (ClientState::I, _) => ClientBlock::default(),
        (ClientState::S | ClientState::E, _) => clean,
        (ClientState::N | ClientState::M | ClientState::O, ByteLocation::InMemory) => {
            ClientBlock { dirty: first, ..clean }
        }
        (ClientState::N | ClientState::M | ClientState::O, ByteLocation::InL2) => {
            ClientBlock { data: TestBytes([0, 2, 3, 4]), above: first, fresh: first, l2: all, ..clean }
        }
    }
}

/// Runs a client's step for an event that it can accept.
fn step(
    block: &mut ClientBlock<TestBytes>,
    event: BlockEvent<Message<TestBytes>, TestBytes>,
    silent_eviction: bool,
) -> StepEffects {
    try_step(block, event, silent_eviction).unwrap()
}

/// Like [`step`], but returns the refusal if the event is illegal.
fn try_step(
    block: &mut ClientBlock<TestBytes>,
    event: BlockEvent<Message<TestBytes>, TestBytes>,
    silent_eviction: bool,
) -> Result<StepEffects, Refusal> {
    let options = NmoesiOptions { silent_eviction, ..NmoesiOptions::default() };
    let (mut slot, mut done) = (Slot::Client(block.clone()), StepEffects::default());
    rules(options).step(Node::Client(ModuleId(0)), &mut slot, event, &mut done)?;
    match slot {
        Slot::Client(after) => *block = after,
        Slot::Home(_) => panic!("a client becomes a home"),
    }
    Ok(done)
}

fn name(message: &Message<TestBytes>) -> String {
    match message {
        Message::Back { set, .. } => format!("Back({})", count(*set)),
        Message::Bytes { set, .. } => format!("Bytes({})", count(*set)),
        Message::Read
        | Message::Write { .. }
        | Message::Sent { .. }
        | Message::Refused
        | Message::Peer { .. }
        | Message::Shared { .. }
        | Message::Exclusive { .. }
        | Message::Alone { .. }
        | Message::Taken { .. }
        | Message::Merged
        | Message::Take
        | Message::Share
        | Message::Forward { .. } => {
            format!("{message:?}").chars().take_while(|letter| letter.is_alphanumeric()).collect()
        }
    }
}

/// The home's possible replies.
fn answers(message: &Message<TestBytes>) -> Vec<Message<TestBytes>> {
    let data = TestBytes([5, 6, 7, 8]);
    match message {
        Message::Read => vec![Message::Shared { data }, Message::Exclusive { data }],
        Message::Write { holds: true } => vec![Message::Alone { set: Mask::NONE, data: TestBytes::default() }],
        Message::Write { holds: false } => vec![Message::Exclusive { data }],
        Message::Back { keep: true, .. } => vec![Message::Taken { kept: true }, Message::Taken { kept: false }],
        Message::Back { keep: false, .. } => vec![Message::Taken { kept: false }],
        Message::Bytes { .. } | Message::Sent { .. } | Message::Refused | Message::Peer { .. } => Vec::new(),
        Message::Shared { .. }
        | Message::Exclusive { .. }
        | Message::Alone { .. }
        | Message::Taken { .. }
        | Message::Merged
        | Message::Take
        | Message::Share
        | Message::Forward { .. } => panic!("a client sends {message:?}"),
    }
}

/// Computes a single table cell.
fn cell(
    before: &ClientBlock<TestBytes>,
    event: &BlockEvent<Message<TestBytes>, TestBytes>,
    silent_eviction: bool,
) -> String {
    let mut block = before.clone();
    let Ok(done) = try_step(&mut block, event.clone(), silent_eviction) else { return "never".to_owned() };
    let sent = done.sent.iter().map(|(_, message)| name(message)).collect::<Vec<_>>().join("+");
    let answers: Vec<_> = done.sent.iter().flat_map(|(_, message)| answers(message)).collect();
    let mut states = vec![block.state];
    if !answers.is_empty() {
        states = answers.into_iter().map(|answer| answered(block.clone(), answer, event, done.is_held)).collect();
    }
    let is_hit = sent.is_empty() && matches!(event, BlockEvent::Request(_));
    let sent = if is_hit { "hit".to_owned() } else { sent };
    let states = states.iter().map(|state| format!("{state:?}")).collect::<Vec<_>>().join(" or ");
    let is_same = states == format!("{:?}", before.state);
    match (sent.is_empty(), is_same) {
        (true, true) => "-".to_owned(),
        (true, false) => states,
        (false, true) => sent,
        (false, false) => format!("{sent}, {states}"),
    }
}

/// The state after a reply, and after the retry of the corresponding request.
fn answered(
    mut block: ClientBlock<TestBytes>,
    answer: Message<TestBytes>,
    event: &BlockEvent<Message<TestBytes>, TestBytes>,
    held: bool,
) -> ClientState {
    step(&mut block, told(answer), true);
    if held {
        let done = step(&mut block, event.clone(), true);
        assert!(!done.is_held && done.sent.is_empty(), "a request that was answered hits");
    }
    block.state
}

/// A table with the given columns, padded to equal widths.
fn table(columns: &[(&str, BlockEvent<Message<TestBytes>, TestBytes>)], written: ByteLocation) -> String {
    let mut rows =
        vec![[" ".to_owned()].into_iter().chain(columns.iter().map(|(name, _)| (*name).to_owned())).collect()];
    for state in ClientState::ALL {
        let cells = columns.iter().map(|(_, event)| cell(&block(state, written), event, true));
        rows.push([format!("{state:?}")].into_iter().chain(cells).collect::<Vec<_>>());
    }
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..=columns.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join(" | ").trim_end().to_owned()
    };
    rows.iter().map(|row| line(row) + "\n").collect()
}

fn tables(written: ByteLocation) -> String {
    let asked = ASKED.map(|(name, request)| (name, BlockEvent::Request(request())));
    format!("\n{}\n{}", table(&asked, written), table(&MET, written))
}

#[test]
fn every_cell_of_table_ii_is_as_stated() {
    let found = tables(ByteLocation::InMemory);
    println!("{found}");
    assert_eq!(found, TABLE);
}

#[test]
fn bytes_present_only_in_the_l2_count_as_written() {
    assert_eq!(tables(ByteLocation::InL2), TABLE);
}

#[test]
fn e_and_s_report_their_eviction_if_the_design_requires_it() {
    let left = |state| cell(&block(state, ByteLocation::InMemory), &BlockEvent::Evict, false);
    assert_eq!(ClientState::ALL.map(left), ["Back(1), I", "Back(1), I", "Back(1), I", "Back(0), I", "Back(0), I", "-"]);
}

#[test]
fn only_a_client_without_the_block_requests_all_of_it() {
    let asks = |state| {
        let mut block = block(state, ByteLocation::InMemory);
        step(&mut block, BlockEvent::Request(coherent_store(1, 9)), true)
            .sent
            .into_iter()
            .next()
            .map(|(_, message)| message)
    };
    let write = |holds| Some(Message::Write { holds });
    assert_eq!(ClientState::ALL.map(asks), [write(true), None, write(true), None, write(true), write(false)]);
}

/// For a client in S: true if the request asks for exclusive access, for scopes `.cta`, `.gpu` and `.sys`.
fn asks_alone(request: impl Fn(Scope) -> BlockRequest<TestBytes>) -> [bool; 3] {
    Scope::ALL.map(|scope| {
        let mut block = block(ClientState::S, ByteLocation::InMemory);
        !step(&mut block, BlockEvent::Request(request(scope)), true).sent.is_empty()
    })
}

#[test]
fn the_scope_decides_which_requests_are_exclusive() {
    let (set, data) = (Mask(1), TestBytes::default());
    assert_eq!(asks_alone(|scope| BlockRequest::Read { set, scope }), [false, false, true]);
    assert_eq!(asks_alone(|scope| BlockRequest::Write { set, scope, data }), [false, true, true]);
    assert_eq!(asks_alone(|scope| BlockRequest::Atomic { set, scope, update: 1, returns: false }), [true; 3]);
}
