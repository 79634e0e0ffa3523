/**
 * The contract of the work {@code records}: records of about 1 kB and photos in a database. Source: iwanowski, tables 1
 * and 2.
 *
 * <p>Starting point: {@link dev.parley.spi.records.Records}. Records only.
 */
@NullMarked
package dev.parley.spi.records;

import org.jspecify.annotations.NullMarked;
