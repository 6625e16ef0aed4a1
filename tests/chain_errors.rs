//! Functions that do not make a chain together: each error of a chain that is put together at run time, by functions that cause it.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rheostat::{
    Cx, FunctionSpec, NetworkFunction, Objects, Outcome, Packet, PacketSet, StateLayout, Verdict,
};
use rheostat_functions::nat::{Mapping, SharedNat, Sharing};
use rheostat_nf::{ChainError, DynamicChain, Link, link, shared_link};
use rheostat_state::LayoutError;

use crate::dynamic_chains::{firewall, nat};

/// A state of so many bytes.
#[derive(Clone)]
struct Bytes<const BYTES: usize>([u8; BYTES]);

impl<const BYTES: usize> Default for Bytes<BYTES> {
    fn default() -> Bytes<BYTES> {
        Bytes([0; BYTES])
    }
}

/// Forwards everything, with a state of so many bytes for each flow that the set names.
struct Sized<const BYTES: usize>(&'static str, PacketSet);

impl<const BYTES: usize> NetworkFunction for Sized<BYTES> {
    type Flow = Bytes<BYTES>;
    type Shard = ();

    fn spec(&self) -> FunctionSpec {
        FunctionSpec { name: self.0, ..FunctionSpec::named_by(self.1) }
    }

    fn packet(
        &self,
        _: &mut Cx<'_, ()>,
        _: &mut Packet<'_>,
        Bytes(bytes): &mut Bytes<BYTES>,
    ) -> Outcome<Verdict> {
        bytes.fill(1);
        Ok(Verdict::Forward)
    }
}

fn of_flows<const BYTES: usize>(name: &'static str) -> Sized<BYTES> {
    Sized(name, PacketSet::five_tuple())
}

fn error(links: Vec<Box<dyn Link>>) -> ChainError {
    match DynamicChain::new(links, &mut StateLayout::new()) {
        Ok(chain) => panic!("a chain: {chain:?}"),
        Err(error) => error,
    }
}

#[test]
fn an_entry_has_room_for_eight_states_and_so_many_bytes() {
    let eight = || (0..8).map(|_| link(of_flows::<1>("one"))).collect::<Vec<_>>();
    assert!(DynamicChain::new(eight(), &mut StateLayout::new()).is_ok());
    let mut nine = eight();
    nine.push(link(of_flows::<1>("ninth")));
    assert_eq!(error(nine), ChainError::Layout(LayoutError::TooMany));
    let large = vec![link(of_flows::<3_000>("a")), link(of_flows::<3_000>("b"))];
    let error = error(large);
    assert!(matches!(error, ChainError::Layout(LayoutError::TooLarge(_))), "{error}");
}

#[test]
fn functions_on_shared_objects_share_those_of_one_run() {
    let (a, b) = (Objects::new(1), Objects::new(1));
    let shared = |name, objects| shared_link(of_flows::<1>(name), objects);
    let apart = vec![shared("a", &a), link(of_flows::<1>("between")), shared("b", &b)];
    assert_eq!(error(apart), ChainError::Objects("a", "b"));
    let together = vec![shared("a", &a), shared("b", &a)];
    assert!(DynamicChain::new(together, &mut StateLayout::new()).is_ok());
}

#[test]
fn one_function_of_a_chain_translates() {
    let nat = || link(nat(Mapping::EndpointIndependent));
    let error = error(vec![nat(), link(firewall()), nat()]);
    let name = nat().name();
    assert_eq!(error, ChainError::Keys(name, name));
    assert!(error.to_string().contains("two keys at most"), "{error}");
}

#[test]
fn a_translation_without_second_keys_has_no_function_with_flows_beside_it() {
    let objects = Objects::new(1);
    let shared_nat = || {
        let config = rheostat_functions::nat::NatConfig::new(vec![[203, 0, 113, 1].into()]);
        let mut random = SmallRng::seed_from_u64(1);
        let nat = SharedNat::new(config, Sharing::default(), &objects, &mut random);
        shared_link(nat.expect("no blocks to divide"), &objects)
    };
    let (nat, firewall_name) = (shared_nat(), link(firewall()).name());
    let expected = ChainError::OneKey(nat.name(), firewall_name);
    assert_eq!(error(vec![link(firewall()), nat]), expected);
    // Beside a function without flows it makes a chain.
    let without = link(Sized::<0>("none", PacketSet::NONE));
    assert!(DynamicChain::new(vec![without, shared_nat()], &mut StateLayout::new()).is_ok());
}

#[test]
fn a_function_on_shared_objects_has_no_flows_of_fewer_fields() {
    let objects = Objects::new(1);
    let hosts = || Sized::<8>("hosts", PacketSet::inner_endpoint());
    let shared = shared_link(hosts(), &objects);
    let error = error(vec![shared, link(of_flows::<1>("flows"))]);
    assert_eq!(error, ChainError::Coarser("hosts", "flows"));
    // In shards it has a table of its own.
    let own = vec![link(hosts()), link(of_flows::<1>("flows"))];
    assert!(DynamicChain::new(own, &mut StateLayout::new()).is_ok());
}
