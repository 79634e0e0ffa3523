package dev.rpcx.internal.schema;

import dev.rpcx.schema.Field;

/** Source of the numbers of a type. */
public enum NumberSource {
    /** Each member has its number by {@link Field}. */
    ANNOTATION,
    /** The lock file gives the numbers. */
    LOCK,
    /**
     * The order of declaration gives the numbers. This is for a quick start only, since a component that is inserted
     * renumbers all components after it.
     */
    ORDER,
    /**
     * The form itself gives the numbers: a method's parameters are numbered by position, and a list within a list is
     * field 1.
     */
    FIXED
}
