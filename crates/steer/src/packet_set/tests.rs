use super::*;
use crate::Orientation;

#[test]
fn sets_compose() {
    let tuple = PacketSet::five_tuple();
    let (inner, outer) = (PacketSet::inner_endpoint(), PacketSet::outer_endpoint());
    assert_eq!(tuple.common(&PacketSet::addresses()), PacketSet::addresses());
    assert_eq!((tuple.common(&inner), tuple.finest(&inner)), (inner, tuple));
    let subscriber = PacketSet::address(Whose::Inner, 32, 64);
    let network = PacketSet::address(Whose::Inner, 24, 128);
    assert_eq!(subscriber.common(&tuple), subscriber);
    assert_eq!(inner.common(&subscriber), subscriber);
    assert_eq!(subscriber.common(&network), PacketSet::address(Whose::Inner, 24, 64));
    let destination = PacketSet::address(Whose::Destination, 32, 128);
    for other in [tuple, outer, subscriber] {
        assert!(other.common(&destination).is_empty());
    }
    assert!(outer.common(&subscriber).is_empty());
}

/// Nothing in common stays nothing in common, whatever joins; a function without a set joins anything.
#[test]
fn no_set_and_no_agreement_are_different() {
    let (tuple, stations) = (PacketSet::five_tuple(), PacketSet::stations());
    for none in [PacketSet::NONE, PacketSet::none_with_ports()] {
        assert_eq!((tuple.common(&none), none.common(&tuple)), (tuple, tuple));
        assert_eq!((tuple.finest(&none), none.finest(&tuple)), (tuple, tuple));
        assert_eq!(none.common(&stations), stations);
    }
    let ports = PacketSet::none_with_ports();
    assert_eq!((PacketSet::NONE.common(&ports), ports.common(&PacketSet::NONE)), (ports, ports));
    assert_eq!((PacketSet::NONE.finest(&ports), ports.finest(&PacketSet::NONE)), (ports, ports));
    let discord = tuple.common(&stations);
    assert_eq!(discord.basis(), Basis::Discord);
    for other in [tuple, stations, PacketSet::NONE, discord] {
        assert_eq!(discord.common(&other), discord);
        assert_eq!(other.common(&discord), discord);
    }
}

#[test]
fn a_set_of_fields_per_side_is_that_of_the_inner_end_where_they_mirror_each_other() {
    let source = Fields::SOURCE | Fields::SOURCE_PORT | Fields::VLAN;
    let destination = Fields::DESTINATION | Fields::DESTINATION_PORT | Fields::VLAN;
    assert_eq!(PacketSet::per_side(source, destination), PacketSet::inner_endpoint());
    assert_eq!(PacketSet::per_side(destination, source), PacketSet::outer_endpoint());
    let senders = PacketSet::per_side(source, source);
    assert!(!senders.directions_meet() && senders.is_lopsided());
    let received = PacketSet::per_side(Fields::NONE, source | destination);
    assert!(!received.directions_meet() && !received.is_lopsided());
    assert_eq!(PacketSet::per_side(Fields::NONE, Fields::NONE), PacketSet::NONE);
}

#[test]
fn sets_read_well() {
    let (lan, wan) = (Orientation::Inside, Orientation::Outside);
    let tcp = PacketSet::five_tuple().only(Protocols::TCP_UDP);
    let named = "inner address, outer address, inner port, outer port, protocol, VLAN";
    assert_eq!(tcp.to_string(), format!("TCP or UDP: {named}"));
    let inner = PacketSet::inner_endpoint();
    assert_eq!(inner.seen_by(&lan), "source address, source port, protocol, VLAN");
    assert_eq!(inner.seen_by(&wan), "destination address, destination port, protocol, VLAN");
    let subscriber = PacketSet::address(Whose::Inner, 32, 64);
    assert_eq!(subscriber.to_string(), "inner address /32 and /64");
    assert_eq!(subscriber.seen_by(&wan), "destination address /32 and /64");
    let source = PacketSet::address(Whose::Source, 24, 64);
    assert_eq!(source.seen_by(&wan), "source address /24 and /64");
    assert_eq!(
        PacketSet::stations().seen_by(&lan),
        "source MAC address, destination MAC address, Ethertype, VLAN"
    );
    assert_eq!(PacketSet::station(Whose::Inner).to_string(), "inner MAC address, VLAN");
    assert_eq!(PacketSet::station(Whose::Inner).seen_by(&wan), "destination MAC address, VLAN");
    let received = PacketSet::per_side(Fields::NONE, Fields::SOURCE);
    assert_eq!(received.to_string(), "from inside no fields; from outside source address");
    assert_eq!(received.seen_by(&lan), "no fields");
    assert_eq!(PacketSet::NONE.to_string(), "no fields");
}

#[test]
fn frames_of_every_protocol_belong_to_a_set_of_the_link_layer() {
    assert_eq!(PacketSet::stations().only(Protocols::TCP), PacketSet::stations());
}
