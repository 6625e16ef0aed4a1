use std::net::SocketAddr;

use rheostat_base::LaneId;
use rheostat_settings::declared::kind;
use rheostat_settings::{Findings, Table, document};

use super::{
    ApplicationError, ApplicationRegistration, ConfiguredApplication, Events, MakeApplication,
    Making, applications,
};
use crate::echo::Echo;
use crate::handler::{Handler, SocketEvent};
use crate::{ConnectionId, Sockets};

rheostat_settings::settings! {
    /// Settings of an own service.
    struct OwnSettings {
        /// How many.
        limit: u16 = kind::integer(1..=9), default(3);
    }
}

struct Quiet;

impl Handler for Quiet {
    type Data = ();
    type Worker = ();

    fn worker(&self, _: LaneId) {}

    fn accept(&self, (): &mut (), _: SocketAddr, _: SocketAddr) {}

    fn handle(&self, (): &mut (), _: ConnectionId, _: SocketEvent, _: &mut Sockets<'_, ()>) {}
}

fn read(application: &ApplicationRegistration, text: &str) -> Option<ConfiguredApplication> {
    let text = format!("[serve]\n{text}");
    let document = document::parse(&text).unwrap();
    let mut findings = Findings::default();
    let read = Table::read_root(&document, &mut findings, |root, findings| {
        root.section("serve", findings, |table, findings| application.read(table, findings))
    });
    read.flatten().filter(|_| !findings.refuses())
}

#[test]
fn every_application_that_comes_along_has_a_name_of_its_own_and_a_summary() {
    let all = applications();
    for (number, application) in all.iter().enumerate() {
        assert!(all[..number].iter().all(|other| other != application), "{}", application.name);
        assert!(!application.summary.is_empty() && !application.summary.ends_with('.'));
        assert!(application.settings.iter().all(|setting| !setting.help.is_empty()));
    }
}

#[test]
fn an_application_is_made_of_nothing_of_settings_or_of_a_result() {
    let plain = (|| Echo).registration("plain");
    let configured = read(&plain, "").unwrap();
    assert_eq!(configured.to_string(), "plain");
    assert!(configured.make(&Making::default()).is_ok());

    let with = (|settings: OwnSettings| {
        if settings.limit < 5 { Ok(Echo) } else { Err("the limit is too high") }
    })
    .registration("limited");
    assert_eq!(with.settings[0].flag(), "limit");
    let usual = read(&with, "").unwrap();
    assert!(usual.make(&Making::default()).is_ok());
    let high = read(&with, "limit = 5").unwrap();
    assert_eq!(high.to_string(), "limited, limit 5");
    assert_ne!(usual, high);
    let error = high.make(&Making::default()).err();
    assert_eq!(error, Some(ApplicationError("the limit is too high".to_owned())));
    assert!(read(&with, "limit = 10").is_none(), "out of range");
}

#[test]
fn a_handler_says_that_it_has_no_requests() {
    let quiet = (|| Events(Quiet)).registration("quiet");
    assert!(read(&quiet, "").unwrap().facts().is_handler);
    let echo = (|| Echo).registration("own");
    assert!(!read(&echo, "").unwrap().facts().is_handler);
}
