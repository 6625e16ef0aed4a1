//! Applications made by a function of their settings.

use std::fmt::Display;

use rheostat_settings::declared::DeclaredSettings;

use super::{
    ApplicationError, ApplicationFacts, ApplicationKind, ApplicationRegistration, Opening, Program,
};
use crate::application::Application;
use crate::handler::Handler;

/// An application that takes events of its connections, for registration: `|| Events(Proxy::new())`.
#[derive(Clone, Copy, Debug)]
pub struct Events<H>(pub H);

/// A value that a service can be made of: an [`Application`], [`Events`], or a `Result` of one, whose error is reported.
pub trait IntoProgram {
    /// Whether it takes events of its connections in place of requests.
    const IS_HANDLER: bool = false;

    /// The program, or why there is none.
    ///
    /// # Errors
    /// [`ApplicationError`] with the error of a `Result`.
    fn into_program(self) -> Result<Program, ApplicationError>;
}

impl<A: Application> IntoProgram for A {
    fn into_program(self) -> Result<Program, ApplicationError> {
        Ok(Program::requests(self))
    }
}

impl<H: Handler> IntoProgram for Events<H> {
    const IS_HANDLER: bool = true;

    fn into_program(self) -> Result<Program, ApplicationError> {
        Ok(Program::events(self.0))
    }
}

impl<P: IntoProgram, E: Display> IntoProgram for Result<P, E> {
    const IS_HANDLER: bool = P::IS_HANDLER;

    fn into_program(self) -> Result<Program, ApplicationError> {
        self.map_err(|error| ApplicationError(error.to_string()))?.into_program()
    }
}

/// A function that makes an application: of nothing, or of settings that [`settings!`](rheostat_settings::settings) declares.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not make an application",
    note = "write a function without arguments, or of settings declared by `rheostat::settings!`, that returns an `Application`, \
            `Events(handler)`, or a `Result` of one"
)]
pub trait MakeApplication<Arguments>: Send + Sync + 'static {
    /// Registers it under `name`.
    fn registration(self, name: &'static str) -> ApplicationRegistration;
}

/// The summary of an application of the program that registers it.
const OWN: &str = "An application of this program";

impl<F, P> MakeApplication<()> for F
where
    F: Fn() -> P + Send + Sync + 'static,
    P: IntoProgram,
{
    fn registration(self, name: &'static str) -> ApplicationRegistration {
        ApplicationKind::<()>::new(name, OWN, move |(), _| Ok(self().into_program()?.into()))
            .with_facts(|()| facts::<P>())
            .register()
    }
}

impl<F, S, P> MakeApplication<(S,)> for F
where
    F: Fn(S) -> P + Send + Sync + 'static,
    S: DeclaredSettings,
    P: IntoProgram,
{
    fn registration(self, name: &'static str) -> ApplicationRegistration {
        ApplicationKind::<S>::new(name, OWN, move |settings, _| {
            Ok(self(settings.clone()).into_program()?.into())
        })
        .with_facts(|_| facts::<P>())
        .register()
    }
}

fn facts<P: IntoProgram>() -> ApplicationFacts {
    ApplicationFacts {
        is_handler: P::IS_HANDLER,
        opens: P::IS_HANDLER.then(Opening::default),
        ..ApplicationFacts::default()
    }
}
