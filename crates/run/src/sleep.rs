//! Sleeps of workers. Models of the protocols between them run without the operating system, and do not sleep.

#[cfg(not(any(loom, shuttle)))]
pub(crate) use rheostat_kernel::sleep::{RunDelay, SAMPLES_AT_START, Sleeper, calibrate};

#[cfg(any(loom, shuttle))]
pub(crate) use model::{SAMPLES_AT_START, Sleeper, calibrate};
#[cfg(any(loom, shuttle))]
pub(crate) use rheostat_kernel::sleep::RunDelay;

#[cfg(any(loom, shuttle))]
mod model {
    use std::time::Duration;

    use rheostat_base::Clock;
    use rheostat_kernel::sleep::SleepProfile;

    pub(crate) const SAMPLES_AT_START: usize = 1;

    pub(crate) struct Sleeper;

    impl Sleeper {
        pub(crate) fn new(_: Clock) -> Sleeper {
            Sleeper
        }

        pub(crate) fn slack(&self) -> Result<(), std::convert::Infallible> {
            Ok(())
        }

        pub(crate) fn sleep(&self, _: Duration) {}

        pub(crate) fn spin(&self, _: Duration) {}
    }

    pub(crate) fn calibrate(_: &Sleeper, _: &Clock, _: usize, _: impl FnMut()) -> SleepProfile {
        SleepProfile::exact()
    }
}
