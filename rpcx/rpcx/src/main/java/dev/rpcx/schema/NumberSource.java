package dev.rpcx.schema;

/** Where the numbers of a type come from. */
public enum NumberSource {
    /** {@link Field} on each. */
    ANNOTATION,
    /** The lock file. */
    LOCK,
    /** The order of declaration: a quick start only, since a component put in between renumbers those after it. */
    ORDER,
    /** Given by the form itself: a method's parameters by position, a list within a list by 1. */
    FIXED
}
