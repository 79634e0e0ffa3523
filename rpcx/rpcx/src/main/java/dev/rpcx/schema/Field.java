package dev.rpcx.schema;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Sets the Protobuf number of one member of a type or of a method. The members are:
 *
 * <ul>
 *   <li>the components of a record
 *   <li>the properties of a class, where the annotation stands on the field or the getter, or on the parameter if the
 *       constructor takes the values of all properties
 *   <li>the parameters of a method
 *   <li>the constants of an enum
 *   <li>the cases of a sealed type, where the annotation stands on the class of the case
 * </ul>
 *
 * <p>Either all members of a type or method have this annotation, or none of them. The constant or case that stands for
 * unknown values does not count as a member, see {@link Unknown}.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.RECORD_COMPONENT, ElementType.FIELD, ElementType.METHOD, ElementType.PARAMETER, ElementType.TYPE})
public @interface Field {
    /**
     * Returns the Protobuf number of the member. A field of a message has a number from 1 to 536 870 911, except
     * 19 000 to 19 999, which Protobuf reserves. A constant of an enum has any number from 0 on.
     */
    int value();
}
