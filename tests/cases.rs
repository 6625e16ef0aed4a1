//! Runs every `tests/nf/*.case`. `docs/cases.md` is the reference of the language.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use rheostat_base::DropReason;
use rheostat_cases::{Case, CaseError, Subject, files};
use rheostat_control::Registry;

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nf");
    files(&folder).expect("the folder of cases")
}

fn registry() -> Registry {
    Registry::new()
        .with_functions(rheostat_functions::ALL)
        .with_chains(rheostat_functions::shipped::CHAINS)
}

#[test]
fn every_case_comes_out_as_written() {
    let (steps, wrong) = run_all(&registry());
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
    assert!(steps > 200, "only {steps} packets were sent");
}

/// Without chains that are compiled as a whole, every chain is put together at run time.
#[test]
fn every_case_comes_out_as_written_in_chains_put_together_at_run_time() {
    let registry = Registry::new().with_functions(rheostat_functions::ALL);
    let (steps, wrong) = run_all(&registry);
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
    assert!(steps > 200, "only {steps} packets were sent");
}

/// How many packets all cases sent, and which came out otherwise than as written.
fn run_all(registry: &Registry) -> (usize, Vec<String>) {
    let (mut steps, mut wrong) = (0, Vec::new());
    for path in cases() {
        match Case::load(&path).and_then(|case| case.run(&Subject::Named(registry))) {
            Ok(count) => steps += count,
            Err(problem) => wrong.push(problem.to_string()),
        }
    }
    (steps, wrong)
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
        seen.extend(Case::load(&path).expect("a case").drops().map(str::to_owned));
    }
    let without: Vec<_> = REASONS.iter().filter(|reason| !seen.contains(reason.name())).collect();
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

/// Runs a text as a case.
fn run(text: &str) -> Result<usize, CaseError> {
    Case::parse("t.case", text)?.run(&Subject::Named(&registry()))
}

#[test]
fn a_wrong_expectation_names_its_line_and_both_sides() {
    let opening = "at 0s lan 10.0.0.1:1 > 198.51.100.1:80 tcp S seq 1\n";
    for (text, wrong_line, wanted, outcome) in [
        (format!("{opening}  drop denied\n"), 2, "drop denied", "wan 10.0.0.1:1 > 198.51.100.1:80 tcp S seq 1"),
        (
            "at 0s lan 10.0.0.1:1 > 198.51.100.1:80 tcp A seq 1\n  wan same\n".to_owned(),
            2,
            "wan 10.0.0.1:1 > 198.51.100.1:80 tcp A seq 1 ack 0",
            "drop tcp_invalid",
        ),
        (
            format!("{opening}  wan 10.0.0.1:1 > 198.51.100.1:80 tcp S seq 2\n"),
            2,
            "wan 10.0.0.1:1 > 198.51.100.1:80 tcp S seq 2",
            "wan 10.0.0.1:1 > 198.51.100.1:80 tcp S seq 1",
        ),
        (opening.to_owned(), 1, "nothing more", "wan 10.0.0.1:1 > 198.51.100.1:80 tcp S seq 1"),
        (
            "chain monitor\nat 0s lan 10.0.0.1:1 > 10.0.0.2:2 udp len 1\n  wan 10.0.0.1:$a > 10.0.0.2:2 udp len 1\n  check $a even\n".to_owned(),
            4,
            "$a even",
            "$a = 1",
        ),
    ] {
        let problem = run(&text).expect_err("a wrong expectation");
        let CaseError::Failed { file, line, expected, got, way } = problem else {
            panic!("{problem}");
        };
        assert_eq!((file.as_str(), line), ("t.case", Some(wrong_line)), "{text}");
        assert_eq!((expected.as_str(), got.as_str()), (wanted, outcome), "{text}");
        assert_eq!(way, "1 lane");
    }
    assert_eq!(run(&format!("{opening}  wan same\n")), Ok(6), "one step in six ways");
}

#[test]
fn a_line_that_is_none_of_a_case_is_named() {
    let udp = "at 0s lan 10.0.0.1:1 > 10.0.0.2:2 udp";
    for (text, part) in [
        ("at 0s lan 10.0.0.1 tcp\n", "t.case:1: "),
        ("at soon lan 10.0.0.1:1 > 10.0.0.2:2 udp\n", "`soon` is no time"),
        ("at 500000h+500000h lan 10.0.0.1:1 > 10.0.0.2:2 udp\n", "more than 100 years"),
        ("at 0s dmz 10.0.0.1:1 > 10.0.0.2:2 udp\n", "`dmz` is no device"),
        ("address lan 10.0.0.1/33\n", "t.case:1: "),
        ("neighbour lan 10.0.0.2 2:3\n", "no link address"),
        ("at 0s lan 10.0.0.1@4 > 10.0.0.2 arp request\n", "no link address"),
        (&format!("{udp} colour blue\n"), "`colour`"),
        (&format!("{udp} len 4000000000\n"), "at most 60000 bytes"),
        (&format!("{udp} ttl 256\n"), "256 is too large"),
        (&format!("{udp} byte 28 0x00\n"), "there is no byte 28 of 28"),
        (&format!("{udp} cut 29\n"), "29 bytes of 28 cannot be cut"),
        (&format!("{udp} frag 8 60000 1\n"), "ends before byte 60000"),
        ("at 0s lan 10.0.0.1:1 > [fd00::1]:2 udp\n", "one version of IP"),
        ("  wan same\n", "t.case:1: nothing was sent"),
        (&format!("{udp}\n  drop bad_luck\n"), "t.case:2: `bad_luck` is no reason"),
        (&format!("| default_inside = \"maybe\"\n{udp}\n"), "maybe"),
        (&format!("chain nonesuch\n{udp}\n"), "nonesuch"),
        (&format!("at 2s{}\nat 1s{}\n", &udp[5..], &udp[5..]), "t.case:2: time goes back"),
    ] {
        let problem = run(text).expect_err("a text that is no case");
        assert!(matches!(problem, CaseError::Unreadable { .. }), "{problem}");
        assert!(problem.to_string().contains(part), "{problem}");
    }
}

/// Words of the language, and numbers at the edges of their ranges, in place of those of a case.
const WORDS: [&str; 16] = [
    "0",
    "1",
    "65535",
    "65536",
    "4294967295",
    "-1",
    "udp",
    "tcp",
    "icmp",
    "frag",
    "cut",
    "byte",
    "len",
    ">",
    "[::]:0",
    "$a",
];

#[test]
fn a_garbled_case_is_an_error_and_no_panic() {
    let registry = registry();
    let (mut read, mut refused) = (0, 0);
    for (number, path) in cases().into_iter().enumerate() {
        let text = std::fs::read_to_string(&path).expect("a case that can be read");
        let lines: Vec<&str> = text.lines().collect();
        for round in 0..6 {
            let changed = (number * 7 + round * 13) % lines.len();
            let mut garbled: Vec<String> = lines.iter().map(ToString::to_string).collect();
            let mut words: Vec<&str> = lines[changed].split(' ').collect();
            let place = (number + round * 3) % words.len();
            words[place] = WORDS[(number * 5 + round) % WORDS.len()];
            garbled[changed] = words.join(" ");
            match Case::parse("t.case", &garbled.join("\n")) {
                // A case that is still one need not pass.
                Ok(case) if round == 0 => {
                    let _ = case.run(&Subject::Named(&registry));
                    read += 1;
                }
                Ok(_) => read += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(read > 50 && refused > 50, "{read} were read, {refused} refused");
}
