//! Functions that do not make a chain together, or not in this order.

use rheostat_nf::registry::{FlowPlace, FunctionFacts};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;

use crate::config::Sections;

const KEY: &str = "chain.functions";

/// A function of the chain by name.
type Named = (&'static str, FunctionFacts);

/// Notes pairs of functions that exclude each other, each with a chain that works.
pub(super) fn check(config: &Sections, findings: &mut Findings) {
    if config.chain.len() < 2 || !findings.clean("chain") {
        return;
    }
    let functions: Vec<Named> =
        config.chain.iter().map(|function| (function.name(), function.facts())).collect();
    let found = [
        second_keys(&functions),
        nothing_in_common(&functions),
        without_second_key(&functions),
        bridged(&functions),
        behind_translation(&functions),
    ];
    for (message, help) in found.into_iter().flatten() {
        let place = findings.place(KEY);
        findings.push(Finding::mistake(KEY, message).at(place, "this chain").help(help));
    }
}

/// What is wrong, and the fix.
type Mistake = Option<(String, String)>;

/// A flow has two keys at most: its own, and one that a function gives it.
fn second_keys(functions: &[Named]) -> Mistake {
    let mut with_key = functions.iter().filter(|(_, facts)| facts.second_key);
    let ((first, _), (second, _)) = (with_key.next()?, with_key.next()?);
    let message = format!(
        "`{first}` and `{second}` both translate addresses, and a flow has two keys at most"
    );
    let rest = written(functions.iter().map(|(name, _)| *name).filter(|name| name != second));
    Some((message, format!("write {rest}, and run `{second}` in another instance")))
}

/// Two functions whose packets cannot be placed so that both have all packets of what they know in one shard.
fn nothing_in_common(functions: &[Named]) -> Mistake {
    let mut pairs = functions
        .iter()
        .enumerate()
        .flat_map(|(at, first)| functions[at + 1..].iter().map(move |second| (first, second)));
    let ((first, one), (second, other)) = pairs.find(|((_, first), (_, second))| {
        // That both translate is the reason where they do.
        let translate = first.second_key && second.second_key;
        !translate && !first.steering().common(&second.steering()).can_place()
    })?;
    let message = format!(
        "packets cannot be placed for `{first}` and `{second}` at once: by {}, and by {}",
        one.steering(),
        other.steering()
    );
    let help = "remove one of them, or have one whose state is in objects that all lanes share";
    Some((message, help.to_owned()))
}

/// A function that translates without giving flows a second key: packets from outside arrive under a key that no flow has.
fn without_second_key(functions: &[Named]) -> Mistake {
    let translates = |(_, facts): &&Named| facts.translated.is_some() && !facts.second_key;
    let (name, _) = functions.iter().find(translates)?;
    let keeps_flows = |(other, facts): &&Named| {
        other != name && matches!(facts.flows, FlowPlace::Shards | FlowPlace::ObjectsAndShards)
    };
    let (other, _) = functions.iter().find(keeps_flows)?;
    let message = format!(
        "`{name}` on shared objects gives flows no second key, so `{other}` would not know their packets from outside"
    );
    let help =
        format!("remove `state` of `{name}`, so that its mappings are in shards, or `{other}`");
    Some((message, help))
}

/// A bridge forwards frames between ports that are on no side.
fn bridged(functions: &[Named]) -> Mistake {
    let (bridge, _) = functions.iter().find(|(_, facts)| facts.bridges)?;
    let stands_for = |(_, facts): &&Named| !facts.served.is_empty() || facts.needs_addresses;
    let (name, _) = functions.iter().find(stands_for)?;
    let message = format!(
        "`{name}` needs an inside and an outside, and the ports of `{bridge}` have no sides"
    );
    Some((message, format!("remove `{name}` or `{bridge}`")))
}

/// A function that distinguishes hosts inside, behind one that hides them.
fn behind_translation(functions: &[Named]) -> Mistake {
    let translates = |(_, facts): &Named| facts.translated.is_some();
    let translator = functions.iter().position(translates)?;
    let (name, _) = functions[translator + 1..].iter().find(|(_, facts)| facts.by_inner_address)?;
    let (hiding, _) = functions[translator];
    let message = format!(
        "`{name}` goes by addresses inside, and behind `{hiding}` it would see external ones alone"
    );
    let mut names: Vec<_> = functions.iter().map(|(name, _)| *name).collect();
    let last = names.remove(translator);
    let after = names.iter().rposition(|other| other == name)? + 1;
    names.insert(after, last);
    Some((message, format!("write {}", written(names.into_iter()))))
}

/// A chain as it is written in a file.
fn written<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let words: Vec<_> = names.map(|name| format!("\"{name}\"")).collect();
    format!("`functions = [{}]`", words.join(", "))
}
