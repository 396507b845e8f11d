#pragma once
// The functions that the spin-lock interposer adds to the pthread_spin_* functions. Internal.
//
// The library espalier-spin-lock-interposer defines pthread_spin_lock, pthread_spin_trylock and
// pthread_spin_unlock. A program's own definitions take precedence over the definitions of its
// shared libraries. So if a program links the interposer, libfabric calls these functions. They
// pass every call on to the C library, with two additions. A thread can hold a lock on behalf of
// the calls that it makes (hold, give back). It can also record which locks these calls take.
//
// Only shared_queue_lock.cc uses these functions. It refers to them weakly, so that the endpoint
// also links without the interposer.

#include <pthread.h>

#include <cstddef>

extern "C" {

// Whether the program's shared libraries call the interposer's pthread_spin_* functions. False if
// definitions of another library precede them.
bool espalier_spin_locks_interposed();

// Tries up to `attempts` times to take `lock` for the calling thread, which must not hold another.
// While the thread holds it, its own calls of pthread_spin_lock() on it succeed at once, as if the
// lock were free.
bool espalier_spin_lock_hold(pthread_spinlock_t* lock, int attempts);

// Releases the lock that the calling thread holds.
void espalier_spin_lock_give_back();

// Starts or ends recording which locks the calling thread takes with pthread_spin_lock(). Starting
// discards the previous record.
void espalier_spin_lock_record(bool on);

// Number of different locks recorded; `locks` then points to them. The record keeps the first 8.
std::size_t espalier_spin_lock_recorded(pthread_spinlock_t* const*& locks);

}  // extern "C"
