//! The tree of rows and blocks against a list of all messages.

use std::collections::BTreeMap;

use async_nats::HeaderMap;
use async_nats::datetime::from_nanos;
use async_nats::jetstream::message::StreamMessage;
use proptest::prelude::*;
use store::{IndexRule, Indexed, Key, Term};

use super::{Beginning, BlockAt, Catalog, Place, Reach, Row, Rows, is_row, name_of, sealed};

/// Entries `TERM AT` by line.
struct Rule;

impl IndexRule for Rule {
    fn version(&self) -> u32 {
        1
    }

    fn of(&self, _: &Key, entry: &[u8]) -> Indexed {
        let text = String::from_utf8_lossy(entry);
        let Some((term, at)) = text.split_once(' ') else { return Indexed::default() };
        Indexed { terms: vec![Term::growing(term)], at: at.trim().parse().ok() }
    }
}

fn log() -> Key {
    "agents/bob/inbox".parse().expect("a key")
}

/// A message with these lines.
fn message(sequence: u64, lines: &[(u64, u64)]) -> StreamMessage {
    let text: Vec<String> = lines.iter().map(|(term, at)| format!("{} {at}", id(*term))).collect();
    StreamMessage {
        subject: "relay.one.agents.bob.inbox".into(),
        sequence,
        headers: HeaderMap::new(),
        payload: text.join("\n").into(),
        time: from_nanos(i128::from(sequence)).expect("a time"),
    }
}

fn id(number: u64) -> String {
    format!("01J{number:07}-AFTER-THE-PREFIX")
}

/// A catalog of messages, and its blocks by name.
fn catalog_of(messages: Vec<StreamMessage>) -> (Catalog, BTreeMap<String, Vec<u8>>) {
    let mut catalog = Catalog::empty(&Rule, "relay.*.agents.bob.inbox", 0);
    let (mut open, mut blocks) = (Vec::new(), BTreeMap::new());
    for message in messages {
        open.push(message);
        if is_row(&open) {
            blocks.extend(catalog.add(&Rule, &log(), &open).into_iter().map(|block| (block.name, block.text)));
            open.clear();
        }
    }
    let text = catalog.text();
    assert_eq!(Catalog::parse(&text, &Rule, &catalog.subject), Some(catalog.clone()), "it comes back as it was");
    (catalog, blocks)
}

/// The sequences that may have a term, how many blocks that took, and whether a sequence may have it.
struct Found {
    blocks: usize,
    messages: usize,
    places: Vec<Place>,
}

impl Found {
    fn new(catalog: &Catalog, blocks: &BTreeMap<String, Vec<u8>>, term: &Term) -> Found {
        let (mut looked, mut places) = (0, catalog.rows.places(std::slice::from_ref(term), 0));
        while places.iter().any(|place| matches!(place, Place::Block(_))) {
            let below = |place| match place {
                Place::Block(block) => {
                    looked += 1;
                    let rows = blocks.get(&block.name).and_then(|text| Rows::parse(text, &block));
                    let stretch = || vec![Place::Stretch(block.reach)];
                    rows.map_or_else(stretch, |rows| rows.places(std::slice::from_ref(term), 0))
                }
                place => vec![place],
            };
            places = places.into_iter().flat_map(below).collect();
        }
        let messages = places.iter().map(|place| match place {
            Place::Messages(messages) => messages.len(),
            Place::Stretch(reach) | Place::Block(BlockAt { reach, .. }) => reach.messages,
        });
        Found { blocks: looked, messages: messages.sum(), places }
    }

    fn has(&self, sequence: u64) -> bool {
        self.places.iter().any(|place| match place {
            Place::Messages(messages) => messages.contains(&sequence),
            Place::Stretch(reach) | Place::Block(BlockAt { reach, .. }) => (reach.from..=reach.to).contains(&sequence),
        })
    }
}

fn beginning(catalog: &Catalog, blocks: &BTreeMap<String, Vec<u8>>, first: impl Fn(&Rows) -> Option<Beginning>) -> u64 {
    let mut begin = first(&catalog.rows).unwrap_or(Beginning::At(catalog.last.sequence + 1));
    loop {
        begin = match begin {
            Beginning::At(sequence) => return sequence,
            Beginning::InBlock(block) => {
                let rows = blocks.get(&block.name).and_then(|text| Rows::parse(text, &block));
                rows.and_then(|rows| first(&rows)).unwrap_or(Beginning::At(block.reach.from))
            }
        };
    }
}

#[test]
fn what_is_read_for_an_old_message_hardly_grows_with_the_log() {
    let mut before = 0;
    for count in [1_000, 10_000, 100_000] {
        let messages = (1..=count).map(|number| message(number * 60, &[(number, number)])).collect();
        let (catalog, blocks) = catalog_of(messages);
        let size = catalog.text().len();
        assert!(before == 0 || size < before * 2 + 20_000, "{size} bytes for {count} messages, {before} for a tenth");
        before = size;
        for number in [1, count / 3, count / 2, count - 64] {
            let found = Found::new(&catalog, &blocks, &Term::growing(id(number)));
            assert!(found.has(number * 60), "{number} of {count}");
            assert!(found.messages == 1 && found.blocks <= 2, "{} in {} blocks", found.messages, found.blocks);
        }
        let largest = blocks.values().map(Vec::len).max().unwrap_or_default();
        assert!(largest < 20_000, "a block of {largest} bytes");
    }
}

#[test]
fn a_block_of_another_content_is_not_taken_for_it() {
    let messages = (1..=9_000).map(|number| message(number, &[(number, number)])).collect();
    let (catalog, blocks) = catalog_of(messages);
    let named: Vec<BlockAt> = catalog.rows.blocks().collect();
    let [first, .., last] = named.as_slice() else { panic!("{named:?}") };
    let (text, other) = (&blocks[&first.name], &blocks[&last.name]);
    assert!(Rows::parse(text, first).is_some() && Rows::parse(other, last).is_some());
    assert!(Rows::parse(other, first).is_none() && Rows::parse(&text[1..], first).is_none());
    let mut torn = text.clone();
    torn[text.len() / 2] ^= 1;
    assert!(Rows::parse(&torn, first).is_none() && Rows::parse(b"", first).is_none());
}

/// A machine may write what it likes into its catalogs, also blocks that name themselves or each other by a forged
/// checksum.
#[test]
fn no_chain_of_blocks_is_without_end() {
    let messages = (1..=9_000).map(|number| message(number, &[(number, number)])).collect();
    let (catalog, _) = catalog_of(messages);
    let top = catalog.rows.blocks().next().expect("a block");
    let row = |end: u64, level: u8, block: &str| {
        let text = format!(r#"{{"e":{end},"n":1,"b":"{block}","l":{level}}}"#);
        serde_json::from_str::<Row>(&text).expect("a row")
    };
    let reach = Reach { from: 1, to: 50, messages: 50 };
    let parsed = |rows: Vec<Row>| {
        let rows = Rows { from: 1, rows };
        let (checksum, text) = sealed(&rows);
        let name = name_of(&rows.rows, checksum);
        Rows::parse(&text, &BlockAt { name, reach })
    };
    assert!(parsed(vec![row(20, 1, "0-20-aa"), row(50, 1, "0-50-bb")]).is_some());
    assert!(parsed(vec![row(20, 1, "0-20-aa"), row(50, 1, "1-50-bb")]).is_none(), "of the same level");
    assert!(parsed(vec![row(20, 1, "0-50-aa"), row(50, 1, "0-50-aa")]).is_none(), "twice the same");
    assert!(parsed(vec![row(50, 1, "0-50-aa"), row(50, 1, "0-50-aa")]).is_none(), "of one stretch");
    assert!(parsed(vec![row(20, 1, "0-20-aa"), row(40, 1, "0-40-aa")]).is_none(), "of another stretch");
    assert!(parsed(vec![row(20, 2, "1-20-aa"), row(50, 1, "0-50-aa")]).is_none(), "of several levels");
    assert!(parsed(vec![row(50, 0, "0-50-aa")]).is_none() && top.reach.to > 0, "below everything");
}

#[test]
fn what_has_no_order_is_sought_since_its_time_or_everywhere() {
    let messages = (1..=5_000).map(|number| message(number, &[(number, number)])).collect();
    let (catalog, blocks) = catalog_of(messages);
    let late = Found::new(&catalog, &blocks, &Term::scattered("key").since(4_900));
    assert!(late.has(4_900) && late.messages < 200, "{}", late.messages);
    let anywhere = Found::new(&catalog, &blocks, &Term::scattered("key"));
    assert!(anywhere.has(1) && anywhere.blocks == 0, "no block can say that it has none");
}

#[test]
fn what_is_forgotten_names_its_blocks() {
    let messages = (1..=5_000).map(|number| message(number, &[(number, number)])).collect();
    let (mut catalog, blocks) = catalog_of(messages);
    let gone = catalog.forget_before(2_100);
    assert_eq!((gone.rows, gone.blocks.len()), (2, 2), "{gone:?}");
    assert!(gone.blocks.iter().all(|block| blocks.contains_key(&block.name)));
    assert!(Found::new(&catalog, &blocks, &Term::growing(id(2_100))).has(2_100));
    assert!(catalog.forget_before(1_000_000).blocks.len() < blocks.len() && !catalog.is_empty(), "the last row stays");
}

/// Messages of a few lines, whose terms and times mostly grow.
fn messages() -> impl Strategy<Value = Vec<StreamMessage>> {
    let line = (0..40_u64, 0..40_u64);
    let steps = prop::collection::vec((1..50_u64, prop::collection::vec(line, 0..3)), 2_000..9_000);
    steps.prop_map(|steps| {
        let mut sequence = 0;
        let messages = steps.into_iter().enumerate().map(|(number, (step, lines))| {
            sequence += step;
            let number = u64::try_from(number).unwrap_or_default();
            let lines: Vec<_> = lines.iter().map(|(term, at)| (number + term, number + at)).collect();
            message(sequence, &lines)
        });
        messages.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]
    #[test]
    fn every_message_is_found_whatever_blocks_are_lost(
        (messages, lost, asked) in (messages(), any::<u64>(), prop::collection::vec(any::<prop::sample::Index>(), 40))
    ) {
        let (catalog, mut blocks) = catalog_of(messages.clone());
        let covered = catalog.last.sequence;
        let mut number = 0;
        blocks.retain(|_, _| { number += 1; lost >> (number % 64) & 3 != 0 });
        let indexed: Vec<(u64, Indexed)> = messages.iter().flat_map(|message| {
            let lines = message.payload.split(|byte| *byte == b'\n');
            lines.map(|line| (message.sequence, Rule.of(&log(), line))).collect::<Vec<_>>()
        }).collect();
        for asked in asked {
            let at = u64::try_from(asked.index(messages.len())).unwrap_or_default();
            let wanted = id(at);
            let (term, with) = (Term::growing(&wanted), wanted.as_str());
            let found = Found::new(&catalog, &blocks, &term);
            let first_at = beginning(&catalog, &blocks, |rows| rows.first_at(at));
            let first_with = beginning(&catalog, &blocks, |rows| rows.first_with(with));
            for (sequence, indexed) in indexed.iter().filter(|(sequence, _)| *sequence <= covered) {
                prop_assert!(!indexed.terms.contains(&term) || found.has(*sequence), "{wanted} at {sequence}");
                prop_assert!(indexed.at.is_none_or(|time| time < at) || *sequence >= first_at, "{at}: {first_at}");
                let reaches = indexed.terms.iter().any(|term| term.text.as_str() >= with);
                prop_assert!(!reaches || *sequence >= first_with, "{wanted} at {sequence}, begun at {first_with}");
            }
        }
    }
}
