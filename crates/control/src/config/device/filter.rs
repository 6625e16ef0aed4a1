//! `take` and `leave` of a live device: which packets are rheostat's.

use rheostat_capture::filter::{Filter, Match};

use rheostat_functions::firewall::settings::protocol;
use rheostat_settings::ethertype::ethertype;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::number::integer;
use rheostat_settings::reader::convert::prefix;

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

fn read_match(table: &mut Table<'_>, findings: &mut Findings) -> Match {
    let entry = Match {
        ethertype: table.read("ethertype", findings, ethertype),
        protocol: table.read("protocol", findings, protocol).map(|protocol| protocol.0),
        address: table.read("address", findings, prefix),
        port: table.read("port", findings, integer(1..=65_535)).map(|port| port as u16),
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
