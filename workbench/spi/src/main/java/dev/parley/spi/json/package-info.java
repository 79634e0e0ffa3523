/**
 * The contract of the work {@code json}: documents of a given size behind a front. Source: weerasinghe, section IV.A.
 *
 * <p>Starting point: {@link dev.parley.spi.json.Json}. Records only.
 */
@NullMarked
package dev.parley.spi.json;

import org.jspecify.annotations.NullMarked;
