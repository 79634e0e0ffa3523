package dev.rpcx.internal.schema;

import dev.rpcx.schema.Field;
import dev.rpcx.schema.SchemaException;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Property of a class: a field together with its public getter and its public setter.
 *
 * @param annotated element on which the property's {@code @Field} is looked up: the getter, or the method that
 *     overrides the getter, if that method has the annotation; otherwise the field
 */
record BeanProperty(java.lang.reflect.Field field, AnnotatedElement annotated, Method getter, Method setter) {
    String name() {
        return field.getName();
    }

    /**
     * Returns the properties of the fields that one class declares, by name and in the order of declaration. Their
     * accessors may be methods of a subclass.
     *
     * @param declaring class that declares the fields
     * @param type class that is mapped: {@code declaring} or one of its subclasses
     * @param names names of the fields of subclasses, to which this method adds the names of the fields of
     *     {@code declaring}. If a field of {@code declaring} has the same name as a field of a subclass, the accessors
     *     belong to the field of the subclass, which hides the other
     * @param below properties of the fields of subclasses, by name
     * @throws SchemaException if the value of a field would be lost. This is so if the field has only a getter or only
     *     a setter, or if it has an accessor of another type and none of its own type
     */
    static Map<String, BeanProperty> of(
            Class<?> declaring, Class<?> type, Set<String> names, Map<String, BeanProperty> below) {
        Map<String, BeanProperty> properties = new LinkedHashMap<>();
        for (java.lang.reflect.Field field : declaring.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) || Modifier.isTransient(field.getModifiers())) {
                continue;
            }
            String name = field.getName();
            if (!names.add(name)) {
                BeanProperty hiding = below.get(name);
                if (hiding != null) {
                    properties.put(name, hiding);
                }
                continue;
            }
            boolean isBoolean = field.getType() == boolean.class;
            List<String> getters = Accessors.getters(name, isBoolean);
            List<String> setters = Accessors.setters(name, isBoolean);
            Method getter = getter(type, getters, field.getType());
            Method numbered = getter;
            if (getter == null) {
                // a subclass may override the getter with a narrower type of result. The property still has the getter
                // of the declaring class, and a call of it runs the override. The annotation @Field is read from the
                // override
                getter = getter(declaring, getters, field.getType());
                numbered = getter == null ? null : method(type, getter.getName());
            }
            Method setter = Modifier.isFinal(field.getModifiers()) ? null : setter(type, setters, field.getType());
            if (getter != null && setter != null) {
                AnnotatedElement annotated =
                        numbered != null && numbered.isAnnotationPresent(Field.class) ? numbered : field;
                properties.put(name, new BeanProperty(field, annotated, getter, setter));
            } else if (getter != null || setter != null) {
                throw new SchemaException(declaring.getName() + "." + name + ": " + Accessors.alone(getter != null));
            } else {
                refuseOtherTypes(type, name, getters, setters, declaring.getName());
            }
        }
        return properties;
    }

    /**
     * Refuses a field that has a getter or a setter of a type other than its own, and no accessor of its own type. The
     * accessor shows that the user wants the field to be sent, so the field must not be left out without an error. A
     * method with the field's own name does not count as an accessor here.
     */
    private static void refuseOtherTypes(
            Class<?> type, String field, List<String> getters, List<String> setters, String where) {
        refuse(type, field, getters, 0, where);
        refuse(type, field, setters, 1, where);
    }

    private static void refuse(Class<?> type, String field, List<String> names, int parameters, String where) {
        for (Method method : type.getMethods()) {
            String name = method.getName();
            boolean isNamed = names.contains(name)
                    && !name.equals(field)
                    && method.getParameterCount() == parameters
                    && (parameters > 0 || method.getReturnType() != void.class);
            if (isNamed && isAccessor(method)) {
                throw new SchemaException(where + "." + field + ": " + Accessors.ofOtherType(name));
            }
        }
    }

    private static @Nullable Method getter(Class<?> type, List<String> names, Class<?> result) {
        for (String name : names) {
            Method method = method(type, name);
            if (method != null && method.getReturnType() == result) {
                return method;
            }
        }
        return null;
    }

    private static @Nullable Method setter(Class<?> type, List<String> names, Class<?> parameter) {
        for (String name : names) {
            Method method = method(type, name, parameter);
            if (method != null) {
                return method;
            }
        }
        return null;
    }

    private static @Nullable Method method(Class<?> type, String name, Class<?>... parameters) {
        try {
            Method method = type.getMethod(name, parameters);
            return isAccessor(method) ? method : null;
        } catch (NoSuchMethodException e) {
            return null;
        }
    }

    private static boolean isAccessor(Method method) {
        return !Modifier.isStatic(method.getModifiers());
    }
}
