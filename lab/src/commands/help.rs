//! A test of the examples in `--help` of every command, which call `rheo`.

use clap::CommandFactory;
use rheostat_testkit::help;

use super::Cli;

#[test]
fn every_example_fits_eighty_columns_and_is_a_command_that_rheo_lab_accepts() {
    let (checked, faults) = help::check(&Cli::command());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(checked > 40, "{checked} examples");
}
