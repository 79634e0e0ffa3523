package dev.rpcx.schema;

import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A field of a class with a public getter and setter. */
record BeanProperty(String name, AnnotatedElement annotated, Method getter, Method setter) {
    /**
     * Those that this class itself declares, in the order of its fields.
     *
     * @throws SchemaException a field has one of the two alone, and its value would be lost
     */
    static Map<String, BeanProperty> of(Class<?> type) {
        Map<String, BeanProperty> properties = new LinkedHashMap<>();
        for (java.lang.reflect.Field field : type.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) || Modifier.isTransient(field.getModifiers())) {
                continue;
            }
            String name = field.getName();
            boolean isBoolean = field.getType() == boolean.class;
            Method getter = method(type, Accessors.getters(name, isBoolean), field.getType());
            Method setter = method(type, Accessors.setters(name, isBoolean), null, field.getType());
            if (getter != null && setter != null) {
                for (BeanProperty other : properties.values()) {
                    if (other.getter.equals(getter) || other.setter.equals(setter)) {
                        throw new SchemaException(type.getName() + "." + name + ": has an accessor of " + other.name
                                + " (expected: one property for each of them)");
                    }
                }
                AnnotatedElement annotated = getter.isAnnotationPresent(Field.class) ? getter : field;
                properties.put(name, new BeanProperty(name, annotated, getter, setter));
            } else if (getter != null || setter != null) {
                throw new SchemaException(type.getName() + "." + name + ": " + Accessors.alone(getter != null));
            }
        }
        return properties;
    }

    private static @Nullable Method method(
            Class<?> type, List<String> names, @Nullable Class<?> result, Class<?>... parameters) {
        for (String name : names) {
            Method method = method(type, name, result, parameters);
            if (method != null) {
                return method;
            }
        }
        return null;
    }

    private static @Nullable Method method(
            Class<?> type, String name, @Nullable Class<?> result, Class<?>... parameters) {
        try {
            Method method = type.getMethod(name, parameters);
            boolean fits = result == null || method.getReturnType() == result;
            return fits && !Modifier.isStatic(method.getModifiers()) ? method : null;
        } catch (NoSuchMethodException e) {
            return null;
        }
    }
}
