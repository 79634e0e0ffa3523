/**
 * Keeps services within limits on one machine: cores and memory by control groups, hosts and their links by network
 * namespaces (Linux, root), and a relay that delays, slows and cuts connections (anywhere).
 *
 * <p>Starting points: {@link dev.parley.limits.Confinement#check} says whether this machine can,
 * {@link dev.parley.limits.Confinement#of} sets it up. What is set up is taken down when it is closed, and by the next
 * one where the process that set it up is gone. One thread; a relay has threads of its own. Never starts a service.
 */
@NullMarked
package dev.parley.limits;

import org.jspecify.annotations.NullMarked;
