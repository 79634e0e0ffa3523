/**
 * The contract of the work {@code lecturers}: authentication, flat profiles, and profiles with education. Names of
 * components are those of the source's JSON, so that JSON, GraphQL and Protobuf show them as it does. Source: niswar,
 * figures 6 and 7.
 *
 * <p>Starting point: {@link dev.parley.spi.lecturers.Lecturers}. Records only.
 */
@NullMarked
package dev.parley.spi.lecturers;

import org.jspecify.annotations.NullMarked;
