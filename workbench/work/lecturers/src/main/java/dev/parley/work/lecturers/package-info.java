/**
 * The work {@code lecturers}: an authentication service and services that read profiles, Redis before MySQL. Source:
 * niswar, section IV.
 *
 * <p>Starting point: {@link dev.parley.work.lecturers.LecturersWork}. Threads: the transport's, which block on both
 * databases. Never imports a transport.
 */
@NullMarked
package dev.parley.work.lecturers;

import org.jspecify.annotations.NullMarked;
