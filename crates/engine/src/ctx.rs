//! The opened context that every part of the engine works with.

use std::cell::{OnceCell, RefCell, RefMut};
use std::time::Duration;

use agents::Adapter;
use transcript::Agent;

use crate::advice::Cancelled;
use crate::config::{self, Config};
use crate::context::Context;
use crate::registry;
use crate::registry::{Registry, RegistryProblem};
use crate::workspace;
use crate::workspace::git::Git;

/// What every part of the engine works with: the world around, the agents' files, the registry and the configuration.
pub(crate) struct Ctx {
    pub(crate) context: Context,
    pub(crate) adapters: Vec<Box<dyn Adapter>>,
    pub(crate) registry: RefCell<Registry>,
    pub(crate) warnings: RefCell<Vec<String>>,
    pub(crate) config: OnceCell<Config>,
}

impl Ctx {
    /// Opens the registry. If it can't be written, tine reads what it can, warns, and changes nothing.
    pub(crate) fn open(context: Context) -> registry::Result<Self> {
        let adapters = agents::all(&context.surroundings);
        let mut warnings = Vec::new();
        let registry = match Registry::open(&context.paths.registry) {
            Ok(registry) => registry,
            Err(error @ registry::Error::Newer { .. }) => return Err(error),
            Err(error) => {
                warnings.push(changes_nothing(&error));
                Registry::stand_in(&context.paths.registry, &error)?
            }
        };
        let (registry, warnings) = (RefCell::new(registry), RefCell::new(warnings));
        Ok(Ctx { context, adapters, registry, warnings, config: OnceCell::new() })
    }

    pub(crate) fn warn(&self, warning: String) {
        self.warnings.borrow_mut().push(warning);
    }

    /// Sleeps, unless the work is cancelled.
    pub(crate) fn pause(&self, time: Duration) -> Result<(), Cancelled> {
        std::thread::sleep(time);
        match self.context.cancel.is_cancelled() {
            true => Err(Cancelled),
            false => Ok(()),
        }
    }

    /// The paths, the clock and the environment.
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// The registry, for what only it knows.
    pub(crate) fn registry(&self) -> RefMut<'_, Registry> {
        self.registry.borrow_mut()
    }

    /// Takes the warnings collected so far.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        self.warnings.take()
    }

    /// The agents' files.
    pub(crate) fn adapters(&self) -> &[Box<dyn Adapter>] {
        &self.adapters
    }

    pub(crate) fn adapter(&self, agent: Agent) -> &dyn Adapter {
        let found = self.adapters.iter().find(|adapter| adapter.agent() == agent);
        found.expect("there is an adapter for every agent").as_ref()
    }

    /// The person's settings, read when they are first needed.
    pub(crate) fn config(&self) -> Result<&Config, config::Error> {
        if let Some(config) = self.config.get() {
            return Ok(config);
        }
        let (config, unknown) = config::read(&self.context().paths.config)?;
        for key in unknown {
            let (path, key) = (&self.context().paths.config, transcript::text::one_line(&key));
            self.warn(format!("{}: unknown key `{key}` is ignored", path.display()));
        }
        Ok(self.config.get_or_init(|| config))
    }

    /// git, as a shell would find it.
    pub(crate) fn git(&self) -> workspace::Result<Git> {
        self.context.find_program("git").map(Git::new).ok_or(workspace::Error::NoGit)
    }

    /// Continues with what is readable if the registry turns out to be damaged. Any other error is only reported: the
    /// next run writes what is missing.
    pub(crate) fn do_without_registry(&self, error: &registry::Error) -> registry::Result<()> {
        if matches!(error, registry::Error::Unusable { trouble: RegistryProblem::Damaged, .. })
            && self.registry().is_kept()
        {
            self.warn(changes_nothing(error));
            let stand_in = Registry::stand_in(&self.context().paths.registry, error)?;
            *self.registry() = stand_in;
        } else {
            self.warn(error.to_string());
        }
        Ok(())
    }

    /// Makes a backup of the registry after a change, once a day. The change is recorded whether that works or not.
    pub(crate) fn back_up(&self) {
        let made = self.registry().back_up(self.context().clock.now());
        if let Err(error) = made {
            self.warn(error.to_string());
        }
    }
}

/// The message if the registry can't be used.
pub(crate) fn changes_nothing(error: &registry::Error) -> String {
    format!("{error}; tine works read-only")
}
