//! `[polling]`, and the priority of workers.

use std::time::Duration;

use rheostat_control::Config;
use rheostat_kernel::priority::Priority;
use rheostat_run::poll::StepSleep;
use rheostat_run::poll::metronome::{
    Binding, Goal, LatencyGoal, LatencyOf, MetronomeSettings, Timeouts,
};

use crate::registry;

/// The configuration of a simulated NIC with `text` behind it.
fn polling(text: &str) -> Config {
    const HEAD: &str = "[chain]\nfunctions = []\n\
        [[device]]\nname = \"wire\"\nkind = \"sim\"\nrate = \"1Mpps\"\ninside = \"10.0.0.0/8\"\n";
    match Config::parse(&format!("{HEAD}{text}"), "test.toml", &registry::all()) {
        Ok((config, _)) => config,
        Err(report) => panic!("{}", report.render(false)),
    }
}

#[test]
fn polling_by_metronome_has_the_targets_and_options_of_the_file() {
    let us = Duration::from_micros;
    let metronome = |text: &str| {
        let config = polling(&format!("[polling]\npolicy = \"metronome\"\n{text}"));
        *config.polling.metronome().expect("metronome")
    };
    assert_eq!(metronome(""), MetronomeSettings::default());
    let vacation = metronome(
        "target_vacation = \"1ms\"\nbinding = \"static\"\ntimeouts = \"formula\"\nidle_after = \"never\"\nbudget = 64",
    );
    assert_eq!(vacation.goal, Goal::Vacation(us(1_000)));
    assert_eq!((vacation.binding, vacation.budget), (Binding::Static, 64));
    // Ten times the target, where the usual one would be shorter than that.
    assert_eq!(vacation.timeouts, Timeouts::Adaptive { long: us(10_000), follows: false });
    assert_eq!(vacation.rules.idle_after, None);
    let latency =
        metronome("target_latency = \"150us\"\npercentile = 99.9\nlong_timeout = \"1ms\"");
    let goal = LatencyGoal { limit: us(150), of: LatencyOf::Share(0.999) };
    assert_eq!(latency.goal, Goal::Latency(goal));
    assert_eq!(latency.timeouts, Timeouts::Adaptive { long: us(1_000), follows: true });
    let mean = metronome("target_latency = \"20us\"\npercentile = \"mean\"\ntimeouts = \"equal\"");
    assert_eq!(mean.goal, Goal::Latency(LatencyGoal { limit: us(20), of: LatencyOf::Mean }));
    assert_eq!(mean.timeouts, Timeouts::Equal);
}

#[test]
fn other_policies_have_their_own_times_and_are_told_in_words() {
    let told = |text: &str| {
        let words = polling(text).to_string();
        let line = words.lines().find(|line| line.starts_with("workers")).unwrap();
        line.split_once("polling ").unwrap().1.to_owned()
    };
    assert_eq!(told("[polling]\npolicy = \"interrupt\""), "interrupt after 20us");
    let step = "[polling]\npolicy = \"step-sleep\"\nmax_sleep = \"500us\"\n";
    assert_eq!(polling(step).polling, StepSleep::polling(Duration::from_micros(500)));
    assert_eq!(told(step), "step-sleep up to 500us");
    let metronome = "[workers]\npriority = \"fifo:10\"\n[polling]\npolicy = \"metronome\"\n";
    assert_eq!(
        told(metronome),
        "metronome for a vacation of 10us, interrupt when idle for 100ms, priority fifo:10"
    );
    let latency = "target_latency = \"100us\"\npercentile = 99.9\nbinding = \"static\"\nidle_after = \"never\"\n";
    let told = told(&format!("[polling]\npolicy = \"metronome\"\n{latency}"));
    assert_eq!(told, "metronome for 99.9 % within 100us, workers bound to lanes");
}

#[test]
fn workers_have_the_priority_of_the_file() {
    let priority = |text: &str| polling(&format!("[workers]\n{text}")).workers.priority;
    assert_eq!(priority(""), None);
    assert_eq!(priority("priority = \"fifo:10\""), Some(Priority::Fifo(10)));
    assert_eq!(priority("priority = \"nice:-20\""), Some(Priority::Nice(-20)));
}
