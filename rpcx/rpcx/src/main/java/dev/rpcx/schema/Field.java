package dev.rpcx.schema;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Sets the Protobuf number of a member: a component of a record, a property of a class (on its field or getter), a
 * parameter of a method, a constant of an enum, or a case of a sealed type (on the class). Within a type, or among the
 * parameters of a method, either all members have this annotation or none. The constant or case for unknown values
 * ({@code @Unknown}) does not count as a member.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.RECORD_COMPONENT, ElementType.FIELD, ElementType.METHOD, ElementType.PARAMETER, ElementType.TYPE})
public @interface Field {
    /**
     * Returns the number: 1 to 536 870 911, except 19 000 to 19 999, which Protobuf reserves. For a constant of an
     * enum: 0 or more.
     */
    int value();
}
