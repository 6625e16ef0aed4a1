//! Urgent data (RFC 9293, 3.8.5; RFC 6093).

use rheostat_tcp::{Event, Header};

use crate::script::{Script, plain};

fn receive_urgent(script: &mut Script, seq: u32, pointer: u16, payload: &[u8]) {
    let header = Header { urgent: Some(pointer), ..script.header(seq, Some(1)) };
    script.receive_header(header, payload);
}

#[test]
fn what_is_written_as_urgent_is_pointed_behind_of_until_it_is_acknowledged() {
    let mut script = Script::established(plain());
    script.write(500);
    assert_eq!(script.connection.write_urgent(&[7; 2_000], script.now), Ok(2_000));
    let sent: Vec<_> = script.sent().iter().map(|s| (s.at(), s.header.urgent)).collect();
    assert_eq!(sent, [(1, Some(2_500)), (1_001, Some(1_500)), (2_001, Some(500))]);
    script.receive(1, Some(1_001), b"");
    script.write(300);
    assert_eq!(script.sent_one().header.urgent, None, "data behind the urgent bytes");
    script.expire();
    assert_eq!(script.sent_one().header.urgent, Some(1_500), "sent again");
    script.receive(1, Some(2_801), b"");
    script.write(10);
    assert_eq!(script.sent_one().header.urgent, None);
}

#[test]
fn urgent_data_that_cannot_be_sent_is_announced_by_an_acknowledgement() {
    let mut script = Script::established(plain());
    script.receive_window(1, 0);
    script.sent_nothing();
    assert_eq!(script.connection.write_urgent(b"now", script.now), Ok(3));
    let sent = script.sent_one();
    assert_eq!((sent.header.urgent, sent.payload.len()), (Some(3), 0));
    script.sent_nothing();
}

#[test]
fn urgent_data_is_reported_when_there_is_more_of_it_and_read_in_its_place() {
    let mut script = Script::established(plain());
    receive_urgent(&mut script, 1, 3, b"");
    assert_eq!((script.events(), script.connection.urgent()), (vec![Event::Urgent], Some(3)));
    receive_urgent(&mut script, 1, 3, b"ab");
    assert_eq!(script.events(), [Event::Readable]);
    receive_urgent(&mut script, 3, 10, b"c");
    assert_eq!(script.events(), [Event::Readable, Event::Urgent]);
    assert_eq!(script.connection.urgent(), Some(12));
    assert_eq!(script.read(100), 3);
    assert_eq!(script.connection.urgent(), Some(9));
    script.receive(4, Some(1), &[0; 9]);
    assert_eq!(script.read(100), 9);
    assert_eq!(script.connection.urgent(), None);
}

#[test]
fn an_urgent_pointer_into_the_past_or_out_of_the_window_is_ignored() {
    let mut script = Script::established(plain());
    script.receive(1, Some(1), b"abcd");
    assert_eq!(script.read(100), 4);
    script.events();
    receive_urgent(&mut script, 5, 0, b"");
    receive_urgent(&mut script, 20_000, 9, b"");
    assert_eq!((script.events(), script.connection.urgent()), (vec![], None));
}
