//! Tests of `--version`, and of the examples in `--help` of every command.

use clap::CommandFactory;
use rheostat_measure::record::Build;
use rheostat_testkit::help;

use crate::Cli;

#[test]
fn every_example_fits_eighty_columns_and_is_a_command_that_rheo_accepts() {
    let (checked, faults) = help::check(&Cli::command());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(checked > 60, "{checked} examples");
}

#[test]
fn the_version_names_commit_profile_and_features() {
    let version = Cli::command().render_version();
    let Build { commit, profile } = crate::BUILD;
    let expected =
        format!("rheo {} ({commit}, {profile}, no features)\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(version, expected);
}
