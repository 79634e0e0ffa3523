package dev.rpcx.internal.schema;

import dev.rpcx.schema.Field;

/** Source of the numbers of a type's members. */
public enum NumberSource {
    /** {@link Field} gives each member its number. */
    ANNOTATION,
    /** The lock file gives the numbers. */
    LOCK,
    /**
     * The order of declaration gives the numbers. This is for a quick start only: a component that is inserted changes
     * the numbers of all components after it.
     */
    ORDER,
    /**
     * The form of the message gives the numbers. For example, the parameters of a method are numbered by their
     * positions, and a list within another list is field 1 of a message.
     */
    FIXED
}
