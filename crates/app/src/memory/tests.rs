use super::*;

fn plan() -> MemoryPlan {
    let part = |what, bytes, setting| MemoryPart { what, bytes, from: "so many".into(), setting };
    MemoryPlan {
        parts: vec![
            part("flow tables", 10 << 30, Some("[state] flows")),
            part("packet buffers", 1 << 30, Some("[pool] buffers")),
            part("program and functions", 20 << 20, None),
        ],
        reserved: 100 << 20,
    }
}

fn limited(bytes: u64) -> MemoryLimits {
    let group = (bytes, "the control group (/sys/fs/cgroup/x/memory.max)".to_owned());
    MemoryLimits {
        limits: vec![(64 << 30, "the machine".into()), group],
        ..MemoryLimits::default()
    }
}

#[test]
fn the_least_limit_is_named_with_the_parts_and_the_setting_to_lower() {
    assert_eq!(plan().check(&limited(12 << 30)), Ok(()));
    let text = plan().check(&limited(2 << 30)).unwrap_err().to_string();
    assert_eq!(
        text,
        "this configuration takes 11.0 GiB of memory when all of it is in use, and the control group \
         (/sys/fs/cgroup/x/memory.max) allows 2.0 GiB\n    10.0 GiB  flow tables: so many ([state] flows)\n     \
         1.0 GiB  packet buffers: so many ([pool] buffers)\n    20.0 MiB  program and functions: so many\n  lower \
         [state] flows, or raise the limit"
    );
}

#[test]
fn address_space_counts_what_is_mapped_and_stacks() {
    // 11.02 GiB in use, 0.1 GiB of stacks, 0.98 GiB mapped beyond the 20 MiB that are resident.
    let mapped = (1 << 30) + (20 << 20);
    let within = |limit: u64| {
        let limits = MemoryLimits { address_space: Some(limit), mapped, ..MemoryLimits::default() };
        plan().check(&limits)
    };
    let space = plan().sum() + (100 << 20) + (1 << 30);
    assert_eq!(within(space), Ok(()));
    let text = within(space - 1).unwrap_err().to_string();
    assert!(text.contains("`ulimit -v`") && text.contains("mapped and not in use"), "{text}");
}

#[test]
fn what_is_not_available_now_is_a_warning() {
    let now = |available| MemoryLimits { available: Some(available), ..MemoryLimits::default() };
    assert_eq!(plan().warning(&now(12 << 30)), None);
    let text = plan().warning(&now(3 << 30)).unwrap();
    assert!(text.ends_with("and 3.0 GiB are available at present"), "{text}");
}

#[test]
fn this_process_has_a_limit_and_takes_something() {
    let limits = MemoryLimits::of_this_process();
    assert!(limits.limits.iter().any(|(bytes, from)| *bytes > 1 << 20 && from.contains("machine")));
    assert!(limits.mapped > 0);
}
