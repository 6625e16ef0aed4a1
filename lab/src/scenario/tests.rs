use super::*;

#[test]
fn every_scenario_that_comes_along_can_be_read() {
    for name in names() {
        let scenario = AnyScenario::open(name).unwrap_or_else(|error| panic!("{error}"));
        let (found, question) = match &scenario {
            AnyScenario::Packets(scenario) => (&scenario.name, &scenario.question),
            AnyScenario::Requests(scenario) => (&scenario.name, &scenario.question),
        };
        assert_eq!(found, name);
        assert!(question.ends_with('?'), "{name}: {question}");
    }
}

const GOOD: &str = r#"
title = "t"
question = "q?"
policies = ["rss", "rsspp"]
lanes = [2, 4]
loads = [0.8]
work = "4us"
warm_up = "100ms"
duration = "1s"
seeds = [1]
[traffic]
kind = "mix"
flows = 1000
"#;

fn refused(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    Scenario::parse("s.toml", &GOOD.replace(from, to)).unwrap_err().to_string()
}

#[test]
fn demands_are_shares_of_the_lanes_there_are() {
    let text = GOOD.replace("loads = [0.8]", "demands = [3.0]");
    assert_eq!(Scenario::parse("s.toml", &text).unwrap().loads_on(4), [0.75]);
    assert_eq!(Scenario::parse("s.toml", GOOD).unwrap().loads_on(4), [0.8]);
}

#[test]
fn mistakes_are_refused_with_their_place_and_what_would_be_right() {
    let message = refused("flows = 1000", "flow = 1000");
    assert!(message.contains("unknown field `flow`") && message.contains("s.toml"), "{message}");
    assert!(refused("\"4us\"", "\"4 parsecs\"").contains("parsecs"), "the unit is named");
    assert_eq!(
        refused("rsspp", "rss++"),
        "s.toml, line 4: `policies`: there is no `rss++`; did you mean `rsspp`? write any of rss, rsspp, local-search, \
         traffic-class, dyssect, auto, spray, round-robin, shared-queue, stateful-queue"
    );
    for (from, to, key) in [
        ("[2, 4]", "[0]", "lanes"),
        ("loads = [0.8]", "", "loads"),
        ("loads = [0.8]", "loads = [-1.0]", "loads"),
        ("loads = [0.8]", "demands = [3.0]\nshares_cores = true", "demands"),
        ("work = \"4us\"", "work = \"4us\"\nrate = \"1Mpps\"", "work"),
        ("seeds = [1]", "seeds = []", "seeds"),
        ("seeds = [1]", "seeds = [1]\nshards = 100", "shards"),
        ("seeds = [1]", "seeds = [1]\nmin_lanes = 3", "min_lanes"),
        ("flows = 1000", "flows = 0", "traffic"),
    ] {
        let message = refused(from, to);
        assert!(message.contains(&format!("`{key}`")), "{to}: {message}");
    }
}

#[test]
fn a_value_from_elsewhere_has_no_line() {
    let mut scenario = Scenario::parse("s.toml", GOOD).unwrap();
    scenario.lanes = vec![0];
    let message = scenario.check().unwrap_err().to_string();
    assert_eq!(message, "s.toml: `lanes`: needs numbers from 1 to 256");
    let message = Scenario::open("schedulers").unwrap_err().to_string();
    assert!(message.contains("about requests") && message.contains("rheo bench run"), "{message}");
}

#[test]
fn a_name_that_is_no_scenario_is_met_with_those_there_are() {
    let message = Scenario::open("balnce").unwrap_err().to_string();
    assert!(message.contains("no scenario `balnce`") && message.contains("balance"), "{message}");
}
