//! Classes that contradict each other, and objectives without classes or the other way round.

use rheostat_steer::policy::Class;

use crate::config::Sections;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;

/// Notes what keeps classes and objectives from having an effect.
pub(super) fn check(config: &Sections, findings: &mut Findings) {
    if !findings.clean("class") {
        return;
    }
    repeated_names(config, findings);
    shadows(config, findings);
    if findings.clean("slo") {
        objectives(config, findings);
    }
    if findings.clean("chain") {
        chain(config, findings);
    }
}

fn repeated_names(config: &Sections, findings: &mut Findings) {
    let rules = config.classes.rules();
    for (index, rule) in rules.iter().enumerate() {
        let key = format!("class[{index}].name");
        if rule.name == config.classes.name_of(config.classes.rest()) {
            let finding = Finding::mistake(&key, format!("no class can be named `{}`", rule.name))
                .at(findings.place(&key), "the name of what no class matches")
                .help("give the class another name");
            findings.push(finding);
        }
        let earlier = rules[..index].iter().position(|other| other.name == rule.name);
        let Some(earlier) = earlier else { continue };
        let finding = Finding::mistake(&key, format!("two classes are named `{}`", rule.name))
            .at(findings.place(&format!("class[{earlier}].name")), "first here")
            .at(findings.place(&key), "and again here")
            .help("give each class a name of its own, or make one of both");
        findings.push(finding);
    }
}

/// The first class that matches decides. One behind another that matches all of it never matches: a contradiction when the two
/// are treated differently.
fn shadows(config: &Sections, findings: &mut Findings) {
    let rules = config.classes.rules();
    for (index, rule) in rules.iter().enumerate() {
        let earlier = rules[..index].iter().position(|earlier| earlier.covers(rule));
        let Some(earlier) = earlier else { continue };
        let (first, second) = (format!("class[{earlier}]"), format!("class[{index}]"));
        let other = &rules[earlier];
        let finding = match other.class == rule.class {
            true => Finding::warning(&second, format!("class `{}` can never match", rule.name)),
            false => {
                let message = format!(
                    "class `{}` is {}, but all of it is {} by class `{}`",
                    rule.name, rule.class, other.class, other.name
                );
                Finding::mistake(&second, message)
            }
        };
        let finding = finding
            .at(findings.place(&first), format!("`{}` matches first", other.name))
            .at(findings.place(&second), "whatever this would match")
            .help("put the narrower class first, or remove it");
        findings.push(finding);
    }
}

/// Where no function keeps anything of flows, lanes do not look at addresses and ports; a bridge knows flows by link addresses.
fn chain(config: &Sections, findings: &mut Findings) {
    let knows_flows = config.chain.iter().any(|function| function.facts().knows_flows());
    if !config.classes.rules().is_empty() && !knows_flows {
        let message =
            "lanes do not look at the flows of packets in this chain, so they know no classes";
        let finding = Finding::mistake("class", message)
            .at(findings.place("class[0]"), "this class")
            .at(findings.place("chain.functions"), "no function here keeps flows")
            .help("add a function that keeps flows, such as `monitor`, or remove the classes");
        findings.push(finding);
    }
}

fn objectives(config: &Sections, findings: &mut Findings) {
    let (classes, slo) = (&config.classes, &config.slo);
    if !classes.rules().is_empty() && slo.is_none() {
        let finding = Finding::warning("class", "classes have no effect without objectives")
            .at(findings.place("class[0]"), "this class")
            .help("add `[slo]` with `priority = \"50us\"`, or remove the classes");
        findings.push(finding);
    }
    if slo.of(Class::Priority).is_some() && !classes.has_priority() {
        let finding = Finding::mistake("slo.priority", "no packet is of the priority class")
            .at(findings.place("slo.priority"), "an objective for it")
            .help("add a `[[class]]` with `kind = \"priority\"`, or remove the objective");
        findings.push(finding);
    }
    if let (Some(priority), Some(regular)) = (slo.of(Class::Priority), slo.of(Class::Regular))
        && priority > regular
    {
        let finding =
            Finding::warning("slo.priority", "priority packets may wait longer than others")
                .at(findings.place("slo.priority"), "at most so long")
                .at(findings.place("slo.regular"), "at most so long")
                .help("exchange the two");
        findings.push(finding);
    }
    if !slo.is_none() && config.workers.queue_sharing > 1 && findings.clean("workers") {
        let message = "lanes that share a queue are not planned for objectives";
        let finding = Finding::mistake("slo", message)
            .at(findings.place("slo"), "objectives")
            .at(findings.place("workers.queue_sharing"), "several lanes to each queue")
            .help("remove one of the two");
        findings.push(finding);
    }
}
