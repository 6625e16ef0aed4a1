//! The XDP program places every packet as user space would, and leaves what it should to the kernel.
//!
//! Timed: processes, devices.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use rheostat_capture::{Endpoints, Filter, Match};

use crate::support::steerings::{DEVICES, expected, steerings};
use crate::support::{hostile, udp};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use rheostat_base::{DeviceId, QueueId};
use rheostat_io::backend::bpf::{AttachMode, BpfError, PacketHash, ProgramConfig, XdpProgram};
use rheostat_io::backend::pcap::CaptureReader;
use rheostat_packet::LinkType;
use rheostat_steer::{HashOptions, Steering};
use rheostat_testkit::namespace::in_own_network;
use rheostat_testkit::veth::{VethPair, ip};

const BUCKETS: usize = 256;

/// A program, and what it was made for.
struct Case {
    name: String,
    config: ProgramConfig,
    program: XdpProgram,
}

impl Case {
    fn new(name: &str, steering: &Arc<Steering>, device: DeviceId, hashing: HashOptions) -> Case {
        let filter = Filter::default();
        let config =
            ProgramConfig { steering: steering.clone(), device, hashing, queues: 4, filter };
        let program = XdpProgram::load(&config).unwrap();
        Case { name: format!("{name}, {device}, {hashing:?}"), config, program }
    }

    /// Runs the program on a frame and compares. Errors name what differs.
    fn compare(&mut self, frame: &[u8]) -> Result<(), String> {
        let ProgramConfig { steering, hashing, device, .. } = &self.config;
        let (hash, kind) = expected(steering, *hashing, *device, frame);
        let bucket = steering.bucket_of_hash(hash) as u16;
        let wanted = Some(PacketHash { hash, kind, bucket });
        let said = self.program.probe(frame).unwrap();
        if said == wanted {
            return Ok(());
        }
        Err(format!("{}: {said:?} instead of {wanted:?} for {frame:02x?}", self.name))
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, steering) in steerings(BUCKETS) {
        let steering = Arc::new(steering);
        for device in DEVICES {
            cases.push(Case::new(name, &steering, device, HashOptions::AddressesOnly));
        }
        cases.push(Case::new(name, &steering, DEVICES[2], HashOptions::Full));
    }
    cases
}

/// Cases that fail are printed whole, so none are kept in files.
fn config() -> Config {
    Config { cases: 4_000, failure_persistence: None, ..Config::default() }
}

#[test]
fn hostile_packets_are_hashed_as_in_user_space() {
    if !in_own_network(module_path!(), "hostile_packets_are_hashed_as_in_user_space") {
        return;
    }
    let cases = RefCell::new(cases());
    let which = 0..cases.borrow().len();
    let mut runner = TestRunner::new(config());
    let outcome = runner.run(&(which, hostile::frame()), |(which, frame)| {
        let outcome = cases.borrow_mut()[which].compare(&frame);
        outcome.map_err(TestCaseError::fail)
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn captured_packets_are_hashed_as_in_user_space() {
    let Some(folder) = std::env::var_os("RHEO_TRACES") else {
        println!("not run: RHEO_TRACES names no folder of captures");
        return;
    };
    if !in_own_network(module_path!(), "captured_packets_are_hashed_as_in_user_space") {
        return;
    }
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut cases = cases();
    let mut compared = 0;
    for file in files {
        let Ok(mut reader) = CaptureReader::new(std::fs::File::open(&file).unwrap()) else {
            continue;
        };
        // Of a record that cannot be read on, what came before is enough.
        while let Ok(Some(record)) = reader.next_record() {
            if record.link != LinkType::Ethernet || !(14..3_000).contains(&record.bytes.len()) {
                continue;
            }
            let which = compared % cases.len();
            cases[which].compare(record.bytes).unwrap();
            compared += 1;
        }
    }
    println!("{compared} captured packets compared");
    assert!(compared > 0);
}

#[test]
fn the_filter_holds_in_the_kernel_as_in_user_space() {
    if !in_own_network(module_path!(), "the_filter_holds_in_the_kernel_as_in_user_space") {
        return;
    }
    let entry = Match::default;
    let filters = [
        Filter { take: vec![Match { protocol: Some(6), ..entry() }], ..Filter::default() },
        Filter { leave: vec![Match { port: Some(0x0101), ..entry() }], ..Filter::default() },
        Filter {
            take: vec![
                Match { address: Some("10.0.0.0/24".parse().unwrap()), ..entry() },
                Match { address: Some("fd00::/8".parse().unwrap()), ..entry() },
                Match { ethertype: Some(0x0806), ..entry() },
            ],
            leave: vec![Match { ethertype: Some(0x0800), protocol: Some(17), ..entry() }],
            ..Filter::default()
        },
        Filter { leave: vec![entry()], ..Filter::default() },
        Filter {
            take: (0..16).map(|i| Match { protocol: Some(i * 8 + 1), ..entry() }).collect(),
            leave: (0..16).map(|i| Match { address: Some(under(i)), ..entry() }).collect(),
            ..Filter::default()
        },
        Filter { endpoints: endpoints(), ..Filter::default() },
        Filter {
            take: vec![Match { protocol: Some(17), ..entry() }],
            endpoints: endpoints(),
            leave: vec![Match { address: Some(under(9)), ..entry() }],
        },
    ];
    let (_, steering) = steerings(BUCKETS).pop().unwrap();
    let steering = Arc::new(steering);
    let mut programs = filters.map(|filter| {
        let device = DEVICES[0];
        let hashing = HashOptions::Full;
        let steering = steering.clone();
        let config = ProgramConfig { steering, device, hashing, queues: 1, filter: filter.clone() };
        (XdpProgram::load(&config).unwrap(), filter, [0_u64; 2])
    });
    let programs_in_run = RefCell::new(&mut programs);
    let mut runner = TestRunner::new(Config { cases: 1_000, ..config() });
    let outcome = runner.run(&hostile::frame(), |frame| {
        for (program, filter, counts) in programs_in_run.borrow_mut().iter_mut() {
            let taken = program.probe(&frame).unwrap().is_some();
            proptest::prop_assert_eq!(taken, filter.takes(&frame), "{:?}: {:02x?}", filter, frame);
            counts[usize::from(taken)] += 1;
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    for (program, filter, [left, taken]) in &programs {
        let counters = program.counters();
        assert_eq!((counters.passed, counters.total().packets), (*left, *taken), "{filter:?}");
        assert!(*left > 0, "{filter:?} left nothing");
    }
    for took in [0, 2, 5, 6].map(|number: usize| programs[number].2[1]) {
        assert!(took > 0, "a filter took nothing");
    }
}

/// Endpoints that some segments of the tests go to, and some errors are about.
fn endpoints() -> Endpoints {
    let addresses = ["10.0.0.0", "10.0.0.1", "9.0.0.2", "fd00::1", "fd00::2", "2000::"];
    Endpoints {
        addresses: addresses.map(|address| address.parse().unwrap()).to_vec(),
        ports: vec![0..=255, 257..=257, 0x4000..=u16::MAX],
    }
}

/// A prefix that some addresses of the tests lie in.
fn under(first: u8) -> rheostat_steer::Prefix {
    rheostat_steer::Prefix::containing([first, 0, 0, 0].into(), 8)
}

fn plain(buckets: usize) -> ProgramConfig {
    let (_, steering) = steerings(buckets).pop().unwrap();
    ProgramConfig {
        steering: Arc::new(steering),
        device: DEVICES[0],
        hashing: HashOptions::Full,
        queues: 2,
        filter: Filter::default(),
    }
}

#[test]
fn buckets_are_counted_and_stopping_leaves_everything_to_the_kernel() {
    if !in_own_network(
        module_path!(),
        "buckets_are_counted_and_stopping_leaves_everything_to_the_kernel",
    ) {
        return;
    }
    let mut program = XdpProgram::load(&plain(BUCKETS)).unwrap();
    let mut packets = vec![0; BUCKETS];
    for flow in 0..200 {
        let frame = udp(flow, 1);
        let PacketHash { bucket, .. } = program.probe(&frame).unwrap().expect("it is taken");
        packets[usize::from(bucket)] += 1;
    }
    let counters = program.counters();
    let counted: Vec<u64> = counters.buckets.iter().map(|load| load.packets).collect();
    assert_eq!(counted, packets);
    assert_eq!(counters.total().bytes, 200 * udp(0, 1).len() as u64);
    assert_eq!((counters.passed, counters.unplaced), (0, 200), "no socket was registered");
    assert!(program.reports_hashes());

    let fence = program.stop();
    while !fence.passed() {
        std::thread::yield_now();
    }
    assert_eq!(program.probe(&udp(1, 1)).unwrap(), None);
    assert_eq!(program.counters(), counters);
}

#[test]
fn the_table_is_read_back_as_written() {
    if !in_own_network(module_path!(), "the_table_is_read_back_as_written") {
        return;
    }
    let program = XdpProgram::load(&plain(8)).unwrap();
    let table = program.table();
    assert_eq!(table.read(), [0, 1, 0, 1, 0, 1, 0, 1].map(QueueId));
    let fence = table.rewrite(&[1, 1, 1, 1, 0, 0, 0, 0].map(QueueId)).unwrap();
    while !fence.passed() {
        std::thread::yield_now();
    }
    assert_eq!(table.read(), [1, 1, 1, 1, 0, 0, 0, 0].map(QueueId));
    assert!(table.rewrite(&[QueueId(2); 8]).is_err() && table.rewrite(&[]).is_err());
    assert_eq!(table.read(), [1, 1, 1, 1, 0, 0, 0, 0].map(QueueId));
}

#[test]
fn what_cannot_be_done_is_named() {
    if !in_own_network(module_path!(), "what_cannot_be_done_is_named") {
        return;
    }
    let mut program = XdpProgram::load(&plain(8)).unwrap();
    let no_interface = program.attach(0x7fff_fff0, AttachMode::Auto).unwrap_err();
    assert!(matches!(no_interface, BpfError::NoInterface(0x7fff_fff0)), "{no_interface}");
    let file = std::fs::File::open("/dev/null").unwrap();
    let fd = std::os::fd::AsFd::as_fd(&file);
    for (queue, lane) in [(0, 0), (0, 2), (128, 0)] {
        let error = program.register(queue, lane, fd).unwrap_err();
        assert!(matches!(error, BpfError::Register { .. }), "{error}");
    }
}

#[test]
fn a_program_without_a_holder_is_replaced_and_one_that_is_held_stays() {
    if !in_own_network(
        module_path!(),
        "a_program_without_a_holder_is_replaced_and_one_that_is_held_stays",
    ) {
        return;
    }
    let pair = VethPair::new("x");
    let index = std::fs::read_to_string(format!("/sys/class/net/{}/ifindex", pair.a)).unwrap();
    let index = index.trim().parse().unwrap();
    let mut first = XdpProgram::load(&plain(8)).unwrap();
    assert_eq!(first.attach(index, AttachMode::Auto).unwrap(), AttachMode::Native);
    let mut second = XdpProgram::load(&plain(8)).unwrap();
    let held = second.attach(index, AttachMode::Auto).unwrap_err();
    assert!(matches!(held, BpfError::Occupied { .. }), "{held}");
    drop(first);
    assert_eq!(second.attach(index, AttachMode::Generic).unwrap(), AttachMode::Generic);
    drop(second);

    // As a kernel without links leaves it.
    let object = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/xdp.o");
    ip(&format!("link set dev {} xdp obj {object} sec xdp.frags", pair.a));
    let mut third = XdpProgram::load(&plain(8)).unwrap();
    third.attach(index, AttachMode::Native).unwrap();
}
