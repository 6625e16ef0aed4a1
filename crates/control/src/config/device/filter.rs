//! `take` and `leave` of a live device: which packets are rheostat's.

use rheostat_capture::filter::{Filter, Match};

use rheostat_functions::firewall::Protocol;
use rheostat_functions::firewall::settings::protocol;
use rheostat_settings::declared::Setting;
use rheostat_settings::declared::kind::{ethertype, integer, prefix};
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;
use rheostat_steer::Prefix;

/// Reads `[[device.take]]` and `[[device.leave]]`.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> Filter {
    let [take, leave] = ["take", "leave"].map(|key| {
        let matches = table.sections(key, findings, read_match);
        if matches.len() > Filter::MOST {
            let message = format!("{} matches are more than {}", matches.len(), Filter::MOST);
            let finding = table.mistake(message, "in this table");
            findings.push(finding.help("use prefixes that hold several addresses"));
        }
        matches
    });
    Filter { take, leave, ..Filter::default() }
}

rheostat_settings::keys! {
    struct Keys {
        /// The Ethernet type.
        ethertype: u16 = ethertype();
        /// The protocol of IP.
        protocol: Protocol = protocol();
        /// The source or the destination.
        address: Prefix = prefix();
        /// The source or the destination port.
        port: u16 = integer(1..=65_535);
    }
}

/// `[[device.take]]` and `[[device.leave]]`.
pub(super) fn settings() -> [Setting; 2] {
    let take =
        "Packets that are rheostat's: those that one of these tables matches; all without any.";
    let leave = "Packets that are left to the kernel, of those taken.";
    [("take", take), ("leave", leave)]
        .map(|(key, help)| Setting::tables(key, help, Keys::new().settings()))
}

fn read_match(table: &mut Table<'_>, findings: &mut Findings) -> Match {
    let keys = Keys::new();
    let entry = Match {
        ethertype: keys.ethertype.read(table, findings),
        protocol: keys.protocol.read(table, findings).map(|protocol| protocol.0),
        address: keys.address.read(table, findings),
        port: keys.port.read(table, findings),
    };
    if entry == Match::default() && findings.clean(table.key()) {
        let finding = table.mistake("this would hold for every packet", "in this table");
        findings.push(finding.help(
            "name an `ethertype`, a `protocol`, an `address` or a `port`; without any table, \
             every packet is taken",
        ));
    }
    entry
}
