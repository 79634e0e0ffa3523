package dev.rpcx.internal.schema;

import dev.rpcx.schema.Field;

/** Source of the numbers of a type's fields or enum constants. */
public enum NumberSource {
    /** The {@link Field} annotations of the members give the numbers. */
    ANNOTATION,
    /** The lock file gives the numbers. */
    LOCK,
    /**
     * The order of declaration gives the numbers. This source is for a quick start only: inserting a component changes
     * all later numbers.
     */
    ORDER,
    /**
     * The kind of message gives the numbers. For example, parameters without {@link Field} annotations are numbered by
     * position.
     */
    FIXED
}
