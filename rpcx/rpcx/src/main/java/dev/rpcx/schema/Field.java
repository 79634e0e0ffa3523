package dev.rpcx.schema;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * The Protobuf number of a record's component, a class's property (on its field or getter), a method's parameter, an
 * enum's constant, or a case of a sealed type (on the class). Within one type either all have it or none.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.RECORD_COMPONENT, ElementType.FIELD, ElementType.METHOD, ElementType.PARAMETER, ElementType.TYPE})
public @interface Field {
    /** 1 to 536 870 911, without 19 000 to 19 999, which Protobuf keeps for itself; for an enum's constant also 0. */
    int value();
}
