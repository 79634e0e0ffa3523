package dev.rpcx.schema;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Sets the Protobuf number of a member. A member is a component of a record, a property of a class (the annotation
 * stands on its field or getter), a parameter of a method, a constant of an enum, or a case of a sealed type (the
 * annotation stands on the class). Within one type, and among the parameters of one method, either all members have
 * this annotation or none has it. A constant or case that stands for unknown values ({@code @Unknown}) does not count
 * as a member.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.RECORD_COMPONENT, ElementType.FIELD, ElementType.METHOD, ElementType.PARAMETER, ElementType.TYPE})
public @interface Field {
    /**
     * Returns the number: 1 to 536 870 911, except 19 000 to 19 999, which Protobuf reserves. For a constant of an enum
     * it may be any {@code int} from 0.
     */
    int value();
}
