use rheostat_tcp::sched::Split;

use super::*;

fn named(name: &str) -> Option<Result<AvailableScheduler, SchedulerError>> {
    SchedulerRegistration::named(&ALL, name)
}

/// A scheduler that comes along.
fn known(name: &str) -> AvailableScheduler {
    named(name).unwrap().unwrap()
}

#[test]
fn schedulers_are_read_as_they_are_written() {
    for name in [
        "inline-dfcfs",
        "inline-cfcfs",
        "inline-ws",
        "dispatcher-1:1",
        "dispatcher-2:6-ws",
        "dispatcher-2:6-dfcfs+receive-ws",
    ] {
        let scheduler = known(name);
        assert_eq!((scheduler.to_string().as_str(), scheduler.name()), (name, name));
        let by_grammar = AvailableScheduler::from(name.parse::<SchedulerName>().unwrap());
        assert_eq!(format!("{:?}", scheduler.plan()), format!("{:?}", by_grammar.plan()));
    }
    assert_eq!(known("dispatcher-1:1-cfcfs").name(), "dispatcher-1:1");
    assert_eq!(known(ALL[0].name), AvailableScheduler::default());
}

#[test]
fn a_name_that_is_not_registered_is_none_and_one_of_a_form_has_the_error_of_the_form() {
    for name in ["", "inline", "inline-fifo", "inline-dfcfs ", "own"] {
        assert!(named(name).is_none(), "{name}");
    }
    for name in ["dispatcher-", "dispatcher-D:A", "dispatcher-4", "dispatcher-2:4+receive-fifo"] {
        let error = named(name).unwrap().unwrap_err();
        assert_eq!(error, SchedulerError::NotDispatcher(name.to_owned()));
        assert!(error.to_string().contains("use dispatcher-D:A, D network workers"), "{error}");
    }
    let error = named("dispatcher-2:5").unwrap().unwrap_err().to_string();
    assert!(error.ends_with("use dispatcher-2:4 or dispatcher-2:6"), "{error}");
}

#[test]
fn lanes_share_queues_under_a_central_one_and_when_they_steal() {
    let sharing = |name: &str| known(name).sharing();
    let shared = [None, Some(Sharing::CENTRAL), Some(Sharing::STEALING)];
    assert_eq!(["inline-dfcfs", "inline-cfcfs", "inline-ws"].map(sharing), shared);
    let names =
        ["dispatcher-2:4-ws", "dispatcher-2:4+receive-cfcfs", "dispatcher-2:4-dfcfs+receive-ws"];
    assert_eq!(names.map(sharing), shared);
}

#[test]
fn an_own_scheduler_splits_the_cores_and_goes_before_a_form() {
    let plan =
        SchedulerPlan::dispatcher(Queueing::Ws, |cores| Split::new(cores / 4, cores - cores / 4))
            .receiving_by(Queueing::Cfcfs);
    let own = SchedulerRegistration::new("dispatcher-quarter", plan);
    let registered = [ALL[0], ALL[3], own];
    let read = SchedulerRegistration::named(&registered, "dispatcher-quarter").unwrap().unwrap();
    let plan = read.plan();
    assert_eq!((read.name(), plan.sharing()), ("dispatcher-quarter", Some(Sharing::CENTRAL)));
    assert!(!plan.has_central_queue());
    let members = plan.members().unwrap();
    let on = |cores| members.on_cores(cores, plan.receiving()).map(|split| split.to_string());
    assert_eq!(on(8).unwrap(), "dispatcher-2:6-ws+receive-cfcfs");
    assert_eq!(on(4).unwrap(), "dispatcher-1:3-ws");
    assert_eq!(on(3), Err(SchedulerError::Empty { dispatchers: 0, members: 3 }));
    assert_eq!(read.with_own_queues(), AvailableScheduler::default());
}

#[test]
fn the_scheduler_with_own_queues_has_the_same_workers() {
    for (name, own) in [
        ("inline-ws", "inline-dfcfs"),
        ("dispatcher-2:6-ws+receive-cfcfs", "dispatcher-2:6-ws"),
        ("dispatcher-1:1", "dispatcher-1:1"),
    ] {
        assert_eq!(known(name).with_own_queues().name(), own);
    }
}
