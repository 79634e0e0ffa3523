package dev.rpcx.internal.schema;

import dev.rpcx.schema.Field;
import dev.rpcx.schema.SchemaException;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Class without setters for all of its components, and the constructor that takes all of them. Lombok writes such
 * classes for {@code @Value} and {@code @Builder}, and Kotlin for {@code data class}.
 *
 * @param constructor takes the values of the components, in their order
 */
record Constructed(Constructor<?> constructor, List<Component> components) {
    Constructed {
        components = List.copyOf(components);
    }

    /** Field of the class that has a public getter, and the parameter of the constructor that sets the field. */
    record Component(java.lang.reflect.Field field, Method getter, Parameter parameter) {
        String name() {
            return field.getName();
        }

        /** Returns the element whose {@code @Field} is used. If no element has one, returns the field. */
        AnnotatedElement annotated() {
            return places().stream()
                    .filter(place -> place.isAnnotationPresent(Field.class))
                    .findFirst()
                    .orElse(field);
        }

        /**
         * Returns the elements whose {@code @Field} gives the number of this component. There may be several, since
         * Kotlin and Lombok can copy an annotation from a property to its parameter or its getter.
         */
        List<AnnotatedElement> numbered() {
            @Nullable Field number = annotated().getAnnotation(Field.class);
            return places().stream()
                    .filter(place -> Objects.equals(number, place.getAnnotation(Field.class)))
                    .toList();
        }

        private List<AnnotatedElement> places() {
            return List.of(parameter, getter, field);
        }
    }

    /**
     * Returns the constructor and the components of a class. Returns null if the class is one with setters, or has no
     * constructor whose parameters have the types of the fields with a getter, in the order of these fields.
     *
     * @throws SchemaException if nothing says which parameter sets which field, or if the value of another field would
     *     be lost
     */
    static @Nullable Constructed of(Class<?> raw) {
        List<java.lang.reflect.Field> fields = new ArrayList<>();
        List<java.lang.reflect.Field> others = new ArrayList<>();
        List<Method> getters = new ArrayList<>();
        boolean hasSetters = true;
        for (java.lang.reflect.Field field : raw.getDeclaredFields()) {
            if (BeanProperty.isLeftOut(field)) {
                continue;
            }
            Method getter = BeanProperty.getter(raw, field);
            if (getter == null) {
                others.add(field);
            } else {
                fields.add(field);
                getters.add(getter);
                hasSetters &= !Modifier.isFinal(field.getModifiers()) && BeanProperty.setter(raw, field) != null;
            }
        }
        if (fields.isEmpty() || inheritsComponents(raw) || hasSetters && constructor(raw) != null) {
            return null;
        }
        Class<?>[] types = fields.stream().map(java.lang.reflect.Field::getType).toArray(Class<?>[]::new);
        Constructor<?> constructor = constructor(raw, types);
        if (constructor == null) {
            return null;
        }
        Parameter[] parameters = constructor.getParameters();
        refuseUnknownOrder(raw, fields, parameters);
        others.forEach(field -> BeanProperty.refuseWithoutGetter(raw, raw, field));
        List<Component> components = new ArrayList<>();
        for (int i = 0; i < parameters.length; i++) {
            components.add(new Component(fields.get(i), getters.get(i), parameters[i]));
        }
        return new Constructed(constructor, components);
    }

    private static @Nullable Constructor<?> constructor(Class<?> raw, Class<?>... parameters) {
        try {
            return raw.getDeclaredConstructor(parameters);
        } catch (NoSuchMethodException e) {
            return null;
        }
    }

    /** Returns whether a superclass has a field with a getter, which a constructor of {@code raw} does not set. */
    private static boolean inheritsComponents(Class<?> raw) {
        for (Class<?> c = raw.getSuperclass(); c != null && c != Object.class; c = c.getSuperclass()) {
            for (java.lang.reflect.Field field : c.getDeclaredFields()) {
                if (!BeanProperty.isLeftOut(field) && BeanProperty.getter(raw, field) != null) {
                    return true;
                }
            }
        }
        return false;
    }

    /**
     * Throws an exception if the parameters need not have the order of the fields. The names of the parameters say
     * their order. Kotlin writes no names, but the constructor of a data class has the order of {@code component1()},
     * {@code component2()} and so on, which is that of the fields.
     */
    private static void refuseUnknownOrder(Class<?> raw, List<java.lang.reflect.Field> fields, Parameter[] parameters) {
        List<String> expected =
                fields.stream().map(java.lang.reflect.Field::getName).toList();
        List<String> names = new ArrayList<>();
        for (Parameter parameter : parameters) {
            if (!parameter.isNamePresent()) {
                if (isDataClass(raw, fields)) {
                    return;
                }
                throw new SchemaException(Accessors.withoutNames(raw.getName()));
            }
            names.add(parameter.getName());
        }
        if (!names.equals(expected)) {
            throw new SchemaException(Accessors.ofOtherNames(raw.getName(), names, expected));
        }
    }

    private static boolean isDataClass(Class<?> raw, List<java.lang.reflect.Field> fields) {
        try {
            for (int i = 0; i < fields.size(); i++) {
                Method component = raw.getMethod("component" + (i + 1));
                if (component.getReturnType() != fields.get(i).getType()) {
                    return false;
                }
            }
            return true;
        } catch (NoSuchMethodException e) {
            return false;
        }
    }
}
