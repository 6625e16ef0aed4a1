use super::*;

#[test]
fn the_long_run_has_the_rate_asked_for() {
    let config = FlashCrowdConfig {
        packets_per_second: 1_000,
        factor: 11.0,
        lasting: Duration::from_secs(1),
        every: Some(Duration::from_secs(10)),
        ..FlashCrowdConfig::default()
    };
    assert!((config.usual_rate() - 500.0).abs() < 1e-9);
    let once = FlashCrowdConfig { every: None, ..config };
    assert!((once.usual_rate() - 1_000.0).abs() < 1e-9);
}

#[test]
fn surges_that_make_no_sense_are_refused() {
    let refused = |change: fn(&mut FlashCrowdConfig)| {
        let mut config = FlashCrowdConfig::default();
        change(&mut config);
        FlashCrowd::new(&config).err().unwrap()
    };
    assert_eq!(refused(|c| c.visitors = 0), SourceError::Flows(0));
    let second = Duration::from_secs(1);
    assert_eq!(refused(|c| c.packets_per_second = 0), SourceError::Rate);
    assert_eq!(refused(|c| c.factor = 1.0), SourceError::Factor(1.0));
    let surge = SourceError::Surge { lasting: second * 2, every: second };
    assert_eq!(refused(|c| c.every = Some(Duration::from_secs(1))), surge);
    assert!(matches!(refused(|c| c.usual.flows = 0), SourceError::Mix(_)));
}
