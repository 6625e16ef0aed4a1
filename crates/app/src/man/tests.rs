use super::{Error, command, configuration};
use crate::{App, command_line};

fn page(words: &[&str]) -> Result<String, Error> {
    let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
    command(command_line(&App::new()), &words)
}

#[test]
fn the_page_of_a_command_has_its_flags_and_those_of_settings_their_declarations() {
    let check = page(&["check"]).unwrap();
    assert!(check.starts_with(".ie") || check.starts_with(".TH"), "{check}");
    assert!(check.contains(".TH rheo-check 1"), "{check}");
    assert!(check.contains("\\-\\-explain"), "{check}");
    let http = page(&["serve", "http"]).unwrap();
    assert!(http.contains("\\-\\-idle\\-timeout") && http.contains("default: 5min"), "{http}");
}

#[test]
fn the_page_of_configurations_has_every_key() {
    let app = App::new();
    let page = configuration(&app);
    for section in rheostat_control::Reference::of(&app.registry).sections() {
        for key in section.keys.iter().filter(|key| !key.is_table()) {
            assert!(page.contains(&format!("\\fB{}\\fR", key.key)), "{}", key.key);
        }
    }
}

#[test]
fn an_unknown_page_has_the_nearest_name() {
    let error = page(&["chek"]).unwrap_err();
    assert_eq!(error.to_string(), "there is no page `chek`; did you mean `check`?");
}
