//! Getting in and out of an interface safely: what `--force` allows, and a run that ends by itself unless `rheo keep` confirms it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rheostat_base::unit::parse_duration;
use rheostat_control::Config;
use thiserror::Error;

/// Flags of commands that attach to interfaces.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct AttachmentArgs {
    /// Attach also to the interface of the default route, or of the ssh connection one works over.
    #[arg(long)]
    pub(crate) force: bool,
    /// End after this time, and give the interfaces back, unless `rheo keep` confirms the run before.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub(crate) trial: Option<Duration>,
}

/// `--for` without a way to confirm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "`--for` needs a control socket, through which `rheo keep` confirms the run: add --control PATH"
)]
pub(crate) struct NoConfirmation;

/// A run that ends by itself unless it is confirmed; or one that does not, by default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trial(Option<Arc<Pending>>);

#[derive(Debug)]
struct Pending {
    length: Duration,
    is_kept: AtomicBool,
    is_over: AtomicBool,
}

/// What a confirmation came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmation {
    /// The run goes on.
    Kept,
    /// It went on already: it was confirmed before, or has no trial.
    Needless,
    /// It is ending.
    Late,
}

impl Trial {
    /// The trial of a run, if the flags ask for one.
    ///
    /// # Errors
    /// [`NoConfirmation`] where nobody could confirm.
    pub(crate) fn of(args: &AttachmentArgs, config: &Config) -> Result<Trial, NoConfirmation> {
        let Some(length) = args.trial else { return Ok(Trial::default()) };
        if config.observe.control.is_none() {
            return Err(NoConfirmation);
        }
        Ok(Trial::new(length))
    }

    fn new(length: Duration) -> Trial {
        let (is_kept, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
        Trial(Some(Arc::new(Pending { length, is_kept, is_over })))
    }

    /// Whether the run is to end, so long after its start. Says so once.
    pub(crate) fn is_over(&self, since_start: Duration) -> bool {
        let Some(trial) = &self.0 else { return false };
        // SeqCst here and in `keep`: of a confirmation and an end at the same moment, one at least sees the other.
        if since_start < trial.length || trial.is_kept.load(Ordering::SeqCst) {
            return false;
        }
        let is_new = !trial.is_over.swap(true, Ordering::SeqCst);
        if trial.is_kept.load(Ordering::SeqCst) {
            trial.is_over.store(false, Ordering::SeqCst);
            return false;
        }
        if is_new {
            tracing::warn!(target: "run", "nobody has confirmed the run within {:?} (`rheo keep`): it ends", trial.length);
        }
        true
    }

    /// Confirms the run.
    pub(crate) fn keep(&self) -> Confirmation {
        let Some(trial) = &self.0 else { return Confirmation::Needless };
        if trial.is_over.load(Ordering::SeqCst) {
            return Confirmation::Late;
        }
        match trial.is_kept.swap(true, Ordering::SeqCst) {
            true => Confirmation::Needless,
            false => Confirmation::Kept,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_over_unless_it_was_confirmed() {
        let second = Duration::from_secs(1);
        let trial = Trial::new(2 * second);
        assert!(!trial.is_over(second));
        assert!(trial.is_over(2 * second) && trial.is_over(3 * second));
        assert_eq!(trial.keep(), Confirmation::Late);
        let trial = Trial::new(2 * second);
        assert_eq!((trial.keep(), trial.keep()), (Confirmation::Kept, Confirmation::Needless));
        assert!(!trial.is_over(3 * second));
    }

    #[test]
    fn a_run_without_a_trial_never_ends_by_itself() {
        let trial = Trial::default();
        assert!(!trial.is_over(Duration::MAX));
        assert_eq!(trial.keep(), Confirmation::Needless);
    }
}
