/**
 * The work {@code records}: services that keep records of about 1 kB and photos of 875 kB in PostgreSQL. Source:
 * iwanowski, section 4.2.
 *
 * <p>Starting point: {@link dev.parley.work.records.RecordsWork}. Threads: the transport's, which block on the
 * database. Never imports a transport.
 */
@NullMarked
package dev.parley.work.records;

import org.jspecify.annotations.NullMarked;
