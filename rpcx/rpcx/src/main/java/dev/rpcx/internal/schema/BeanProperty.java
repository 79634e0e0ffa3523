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
 * Property of a class: a field with its public getter and setter.
 *
 * @param annotated element that may have the property's {@code @Field}: the getter or its override if annotated;
 *     otherwise the field
 */
record BeanProperty(java.lang.reflect.Field field, AnnotatedElement annotated, Method getter, Method setter) {
    String name() {
        return field.getName();
    }

    /**
     * Returns the properties of the fields that one class declares, by name and in order of declaration. A subclass may
     * declare their accessors.
     *
     * @param declaring class that declares the fields
     * @param type class that is mapped: {@code declaring} or one of its subclasses
     * @param names names of the fields of subclasses; this method adds those of {@code declaring}. If a field of a
     *     subclass has the same name, it hides the field of {@code declaring}, and the accessors belong to the field of
     *     the subclass
     * @param below properties of the fields of subclasses, by name
     * @throws SchemaException if the value of a field would be lost: the field has only a getter or only a setter, or
     *     only accessors of another type
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
                // A subclass may override the getter with a narrower type. The getter of the declaring class still
                // calls the override, whose @Field is used.
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
     * Refuses a field that has an accessor of another type and none of its own type, since the user seems to want the
     * field to be sent. A method with the field's own name does not count as an accessor here.
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
