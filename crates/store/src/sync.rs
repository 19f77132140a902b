//! The lock type, in one place, so that the model checker can replace it.

#[cfg(not(shuttle))]
pub(crate) use parking_lot::{Mutex, MutexGuard};

#[cfg(shuttle)]
pub(crate) use model::{Mutex, MutexGuard};

/// A lock on cache lines of its own: neighbouring shards do not slow each other down.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct PaddedShard<T>(pub(crate) Mutex<T>);

#[cfg(shuttle)]
mod model {
    pub(crate) use shuttle::sync::MutexGuard;

    /// `parking_lot`'s interface over the model checker's lock.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Mutex<T> {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
        }
    }
}
