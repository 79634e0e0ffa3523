package dev.rpcx.internal.schema;

import dev.rpcx.schema.Field;

/** Source of the numbers of a type's members. */
public enum NumberSource {
    /** {@link Field} gives each member its number. */
    ANNOTATION,
    /** The lock file gives the numbers. */
    LOCK,
    /**
     * The order of declaration gives the numbers. For a quick start only: inserting a component changes all later
     * numbers.
     */
    ORDER,
    /** The form of the message gives the numbers. For example, parameters are numbered by their positions. */
    FIXED
}
