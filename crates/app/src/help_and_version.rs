//! Tests of `--version`, and of the examples in `--help` of every command.

use rheostat_measure::record::Build;
use rheostat_testkit::help;

use crate::{App, command_line};

#[test]
fn every_example_fits_eighty_columns_and_is_a_command_that_rheo_accepts() {
    let (checked, faults) = help::check(&command_line(&App::new()));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(checked > 60, "{checked} examples");
}

#[test]
fn the_version_names_commit_profile_and_features() {
    let version = command_line(&App::new()).render_version();
    let Build { commit, profile } = crate::BUILD;
    let expected =
        format!("rheo {} ({commit}, {profile}, no features)\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(version, expected);
}
