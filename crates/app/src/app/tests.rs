//! Programs with functions of their own.

use std::path::Path;

use clap::CommandFactory;
use rheostat_base::OwnDropReason;
use rheostat_nf::registry::Registration;

use super::App;
use crate::Cli;

fn function(name: &'static str) -> Registration {
    Registration { name, ..rheostat_functions::ALL[0] }
}

#[test]
fn a_name_that_is_taken_or_is_none_is_a_fault() {
    let fault = |app: App| app.faults.join("; ");
    assert_eq!(fault(App::new().functions(&[function("own")])), "");
    assert!(fault(App::new().functions(&[function("nat")])).contains("two functions"));
    let twice = App::new().functions(&[function("own"), function("own")]);
    assert!(fault(twice).contains("two functions have the name `own`"));
    assert!(fault(App::new().functions(&[function("a.b")])).contains("no name for a function"));
    assert!(fault(App::new().functions(&[function("")])).contains("no name for a function"));
}

#[test]
fn two_drop_reasons_with_one_name_are_a_fault() {
    static ONE: OwnDropReason = OwnDropReason::new("app_test.reason", "One.");
    static OTHER: OwnDropReason = OwnDropReason::new("app_test.reason", "Another.");
    assert_eq!(App::new().drop_reasons(&[&ONE, &ONE]).faults, [""; 0]);
    let faults = App::new().drop_reasons(&[&OTHER]).faults;
    assert_eq!(faults, ["two drop reasons have the name `app_test.reason`; rename one of them"]);
}

#[test]
fn help_and_version_name_the_program() {
    let mut own = App::new().named("synlimit", "1.2.3").program.name(Cli::command(), None);
    assert!(own.render_version().starts_with("synlimit 1.2.3 (rheostat "));
    let help = own.render_long_help().to_string();
    assert!(help.contains("synlimit run configs/demo.toml"), "{help}");
    assert!(!help.contains("rheo run"), "{help}");
    let run = own.find_subcommand_mut("run").expect("a command").render_long_help().to_string();
    assert!(run.contains("synlimit run") && !run.contains("rheo run"), "{run}");

    let by_file = App::new().program.name(Cli::command(), Some(Path::new("/usr/bin/quota")));
    assert!(by_file.render_version().starts_with("quota (rheostat "));
    let rheo = App::new().program.name(Cli::command(), Some(Path::new("target/debug/rheo")));
    assert!(rheo.render_version().starts_with("rheo 0"));
}
