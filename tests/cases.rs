//! Runs every `tests/nf/*.case`: packets in, packets expected, in a text that tells its story. See
//! `tests/nf/README.md` for the language.

mod control;
mod family;
mod link;
mod names;
mod packet;
mod record;
mod rig;
mod script;
mod topology;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use crate::cases::script::{Expected, Script};
use rheostat_base::DropReason;
use rheostat_run::Unusual;

/// How many lanes a case is run on, how many of them share a queue and own its shards together, and which of its packets do not take the fast path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    lanes: usize,
    claimants: usize,
    unusual: Unusual,
}

/// How every case is run: the outcome does not depend on it.
fn ways() -> [Way; 6] {
    [(1, 1, 0), (1, 1, 100), (4, 1, 0), (4, 1, 10), (2, 2, 0), (2, 2, 10)].map(
        |(lanes, claimants, percent)| {
            let unusual = Unusual::percent(percent, 5);
            Way { lanes, claimants, unusual }
        },
    )
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nf");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of cases")
        .map(|entry| entry.expect("a folder that can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "case"))
        .collect();
    cases.sort();
    cases
}

/// Runs a text as a case, and over IPv6 if it says so; what is wrong with it or its outcome otherwise.
fn run(name: &str, text: &str, way: Way) -> Result<usize, String> {
    let script = Script::parse(name, text)?;
    let mut steps = rig::run(&script, way)?;
    if script.also_ipv6 {
        let over_ipv6 = rig::run(&script.over_ipv6()?, way);
        steps += over_ipv6.map_err(|problem| format!("{problem}\n  over IPv6"))?;
    }
    if script.also_shared {
        let on_shared_state = rig::run(&script.on_shared_state(), way);
        steps += on_shared_state.map_err(|problem| format!("{problem}\n  on shared state"))?;
    }
    Ok(steps)
}

#[test]
fn every_case_comes_out_as_written() {
    let mut steps = 0;
    let mut wrong = Vec::new();
    for path in cases() {
        let text = std::fs::read_to_string(&path).expect("a case that can be read");
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for way in ways() {
            match run(&name, &text, way) {
                Ok(count) => steps += count,
                Err(problem) => wrong.push(format!("{problem} ({way:?})")),
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
    assert!(steps > 200, "only {steps} packets were sent");
}

/// Why functions, and what stands before them in a lane, drop packets. The rest is about full rings and
/// full queues.
const REASONS: [DropReason; 26] = [
    DropReason::Malformed,
    DropReason::TableFull,
    DropReason::FragmentInvalid,
    DropReason::FragmentIncomplete,
    DropReason::Denied,
    DropReason::NotIp,
    DropReason::TcpInvalid,
    DropReason::HalfOpenLimit,
    DropReason::IcmpUnrelated,
    DropReason::NoMapping,
    DropReason::PortsExhausted,
    DropReason::QuotaExceeded,
    DropReason::Untranslatable,
    DropReason::Policed,
    DropReason::NoRoute,
    DropReason::TooBig,
    DropReason::NoBackend,
    DropReason::NotOurs,
    DropReason::Martian,
    DropReason::TtlExceeded,
    DropReason::NotRouted,
    DropReason::NeighbourUnresolved,
    DropReason::NoListener,
    DropReason::SamePort,
    DropReason::UnderAttack,
    DropReason::Scanner,
];

#[test]
fn every_reason_to_drop_a_packet_has_its_case() {
    let mut seen = HashSet::new();
    for path in cases() {
        let text = std::fs::read_to_string(&path).expect("a case that can be read");
        let script = Script::parse("", &text).expect("a case");
        let expected = script.steps.into_iter().flat_map(|step| step.expected);
        seen.extend(expected.filter_map(|(_, expected)| match expected {
            Expected::Drop(reason) => Some(reason),
            _ => None,
        }));
    }
    let without: Vec<_> = REASONS.iter().filter(|reason| !seen.contains(reason)).collect();
    assert!(without.is_empty(), "no case for {without:?}");
}

/// The functions whose cases carry their name; the firewall's carry none.
const PREFIXES: [&str; 8] =
    ["nat", "lb", "policer", "router", "monitor", "antiddos", "bridge", "portscan"];

/// The page with the table of clauses that a case belongs to.
fn page_of(case: &str) -> &str {
    case.split('-').next().filter(|prefix| PREFIXES.contains(prefix)).unwrap_or("firewall")
}

#[test]
fn the_tables_of_clauses_name_every_case_and_no_other() {
    let names: Vec<String> =
        cases().iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect();
    let pages: BTreeSet<&str> = names.iter().map(|name| page_of(name)).collect();
    for page in pages {
        let table = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/{page}.md"));
        let table = std::fs::read_to_string(table).expect("the table of clauses");
        let is_case = |word: &&str| word.ends_with(".case") && !word.contains('/');
        let named: BTreeSet<&str> = table.split('`').filter(is_case).collect();
        let there = names.iter().map(String::as_str).filter(|name| page_of(name) == page);
        assert_eq!(named, there.collect(), "{page}");
    }
}

const OPENING: &str = "\
at 0s lan 10.0.0.1:1000 > 198.51.100.1:80 tcp S seq 100
  wan same
";

#[test]
fn a_wrong_expectation_names_its_line_and_both_sides() {
    for (text, expected) in [
        (
            "at 0s lan 10.0.0.1:1 > 198.51.100.1:80 tcp S seq 1\n  drop denied\n",
            "t.case:2: expected",
        ),
        ("at 0s lan 10.0.0.1:1 > 198.51.100.1:80 tcp A seq 1\n  wan same\n", "drop tcp_invalid"),
        (
            "at 0s lan 10.0.0.1:1 > 198.51.100.1:80 tcp S seq 1\n  wan 10.0.0.1:1 > 198.51.100.1:80 tcp S seq 2\n",
            "seq 1",
        ),
        ("at 0s lan 10.0.0.1:1 > 198.51.100.1:80 tcp S seq 1\n", "t.case:1: expected nothing"),
    ] {
        let problem = run("t.case", text, ways()[0]).expect_err("a wrong expectation");
        assert!(problem.contains(expected), "{problem}");
    }
    assert_eq!(run("t.case", OPENING, ways()[0]), Ok(1));
}

#[test]
fn what_cannot_be_read_names_its_line() {
    for (text, expected) in [
        ("at 0s lan 10.0.0.1 tcp\n", "t.case:1"),
        ("at soon lan 10.0.0.1:1 > 10.0.0.2:2 udp\n", "`soon` is no time"),
        ("at 0s dmz 10.0.0.1:1 > 10.0.0.2:2 udp\n", "`dmz` is no device"),
        ("address lan 10.0.0.1/33\n", "t.case:1"),
        ("neighbour lan 10.0.0.2 2:3\n", "no link address"),
        ("at 0s lan 10.0.0.1@4 > 10.0.0.2 arp request\n", "no link address"),
        ("at 0s lan 10.0.0.1:1 > 10.0.0.2:2 udp colour blue\n", "`colour`"),
        ("  wan same\n", "t.case:1: nothing was sent"),
        ("| default_inside = \"maybe\"\nat 0s lan 10.0.0.1:1 > 10.0.0.2:2 udp\n", "maybe"),
        (
            "at 2s lan 10.0.0.1:1 > 10.0.0.2:2 udp\nat 1s lan 10.0.0.1:1 > 10.0.0.2:2 udp\n",
            "t.case:2: time goes back",
        ),
    ] {
        let problem = run("t.case", text, ways()[0]).expect_err("a text that is no case");
        assert!(problem.contains(expected), "{problem}");
    }
}
