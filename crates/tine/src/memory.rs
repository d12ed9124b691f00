//! Configures how the C library allocates memory, where possible.

/// Lets every thread take memory in large steps. Those that walk folders take a little for each file, and asking the system
/// for every few of them makes all threads wait; what is not used costs nothing.
pub(crate) fn take_in_large_steps() {
    set(Setting::Step);
}

/// Makes all threads share two memory arenas instead of one arena per thread: with new threads for each call, freed
/// memory would stay in their arenas.
pub(crate) fn share() {
    set(Setting::Places);
}

#[derive(Clone, Copy)]
enum Setting {
    Step,
    Places,
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library has no other way to say so; nothing else runs yet")]
fn set(setting: Setting) {
    let (name, value) = match setting {
        Setting::Step => (libc::M_TOP_PAD, 4 << 20),
        Setting::Places => (libc::M_ARENA_MAX, 2),
    };
    // SAFETY: it only sets a number, and no other thread has begun.
    unsafe {
        libc::mallopt(name, value);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn set(_setting: Setting) {}
