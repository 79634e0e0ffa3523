package dev.rpcx.schema;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Gives the Protobuf number of a record's component, of a class's property (on its field or getter), of a method's
 * parameter, of an enum's constant, or of a case of a sealed type (on the class). Within one type, and among the
 * parameters of one method, either all members have this annotation or none has it. What stands for the unknown
 * ({@code @Unknown}) does not count as a member.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.RECORD_COMPONENT, ElementType.FIELD, ElementType.METHOD, ElementType.PARAMETER, ElementType.TYPE})
public @interface Field {
    /**
     * Returns the number: 1 to 536 870 911, without 19 000 to 19 999, which Protobuf keeps for itself. For an enum's
     * constant the number may be any {@code int} from 0.
     */
    int value();
}
