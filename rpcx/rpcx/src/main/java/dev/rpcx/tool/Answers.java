package dev.rpcx.tool;

import dev.rpcx.internal.schema.Compatibility.Renaming;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.schema.SchemaException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Answers to the questions of {@code rpcx lock}. A question is about a member that is gone from its type while others
 * are new: it has one of the new names now, or it is not there any more. The answers come from the options
 * {@code --rename OLD=NEW} and {@code --removed OLD}, and from the person at the terminal.
 *
 * <p>OLD is the name of a member, for all types in which it is asked about. If the name of a type and a dot stand
 * before the member, as in {@code com.acme.Order.count}, the answer is for this type alone.
 */
final class Answers {
    private static final String RENAME = "--rename";
    private static final String REMOVED = "--removed";

    /** Stands for the new name of a member that is not there any more. */
    private static final String NONE = "";

    /** What a person types for a member that is not there any more. No member can have this name. */
    private static final String TYPED_NONE = "-";

    /** New name of each member, under what the options call the member. */
    private final Map<String, String> given = new LinkedHashMap<>();

    private final Set<String> used = new HashSet<>();

    /** Whether the person has typed nothing, or cannot type anything, so that no further question is asked. */
    private boolean isOver;

    /**
     * Takes the options out of the arguments of {@code rpcx lock}.
     *
     * @throws SchemaException if an option has no value, or a value of another form, or if two options are about one
     *     name
     */
    static Answers takenFrom(List<String> words) {
        Answers answers = new Answers();
        for (Iterator<String> rest = words.iterator(); rest.hasNext(); ) {
            String option = rest.next();
            if (option.equals(RENAME) || option.equals(REMOVED)) {
                rest.remove();
                if (!rest.hasNext()) {
                    throw new SchemaException(option + ": nothing behind it (expected: " + form(option) + ")");
                }
                answers.add(option, rest.next());
                rest.remove();
            }
        }
        return answers;
    }

    private static String form(String option) {
        return option.equals(RENAME) ? "OLD=NEW, such as count=total" : "OLD, such as count";
    }

    private void add(String option, String value) {
        int equals = value.indexOf('=');
        boolean isOfForm = option.equals(RENAME)
                ? equals > 0 && equals < value.length() - 1 && value.indexOf('.', equals) < 0
                : equals < 0 && !value.isEmpty();
        if (!isOfForm) {
            throw new SchemaException(option + " " + value + " (expected: " + form(option)
                    + "; the old name may have its type before it, as in com.acme.Order.count)");
        }
        String old = equals < 0 ? value : value.substring(0, equals);
        if (given.put(old, equals < 0 ? NONE : value.substring(equals + 1)) != null) {
            throw new SchemaException(option + " " + value + ": " + old + " is answered twice (expected: once)");
        }
    }

    /**
     * Returns the renames that name their types, and that fit the lock file. They need no question, so they also help
     * where there is none: if a library's lock file has the new name already, it cannot be joined with a lock file that
     * has the old one.
     */
    List<LockFile.Rename> ofTypes(LockFile lock) {
        List<LockFile.Rename> renames = new ArrayList<>();
        given.forEach((old, name) -> {
            int dot = old.lastIndexOf('.');
            if (dot > 0 && !name.equals(NONE)) {
                LockFile.Rename rename = new LockFile.Rename(old.substring(0, dot), old.substring(dot + 1), name);
                if (rename.fits(lock)) {
                    renames.add(rename);
                    used.add(old);
                }
            }
        });
        return renames;
    }

    /**
     * Returns the new name of a member, an empty text if the member is not there any more, or null if nobody says.
     *
     * @param ask gets a question for the person at the terminal, and returns what the person has typed; null if nobody
     *     can be asked
     * @throws SchemaException if an option gives a name that is not new
     */
    @Nullable
    String to(Renaming question, Function<String, @Nullable String> ask) {
        String ofType = question.type() + "." + question.removed();
        for (String name : List.of(ofType, question.removed())) {
            String answer = given.get(name);
            if (answer != null) {
                used.add(name);
                if (!answer.equals(NONE) && !question.added().contains(answer)) {
                    throw new SchemaException(RENAME + " " + name + "=" + answer + ": " + words(question)
                            + " (expected: a name that is new)");
                }
                return answer;
            }
        }
        String typed = isOver ? null : typed(question, ask);
        if (typed == null) {
            isOver = true;
        } else {
            given.put(ofType, typed);
            used.add(ofType);
        }
        return typed;
    }

    private static @Nullable String typed(Renaming question, Function<String, @Nullable String> ask) {
        String text =
                words(question) + "\nNew name of " + question.removed() + ", or " + TYPED_NONE + " if it has none: ";
        while (true) {
            String line = ask.apply(text);
            if (line == null || line.isBlank()) {
                return null;
            }
            String name = line.strip();
            if (name.equals(TYPED_NONE)) {
                return NONE;
            }
            if (question.added().contains(name)) {
                return name;
            }
        }
    }

    /** Returns in words what has happened to a member. */
    static String words(Renaming question) {
        String added = String.join(", ", question.added());
        return question.where() + ": "
                + (question.isInPlace()
                        ? added + " stands where " + question.removed() + " stood"
                        : question.removed() + " is gone and " + added
                                + (question.added().size() == 1 ? " is new" : " are new"));
    }

    /** Returns the question, and the options that answer it. */
    static String withOptions(Renaming question) {
        StringBuilder text = new StringBuilder(words(question) + " (expected: `rpcx lock` with ");
        for (String name : question.added()) {
            text.append(RENAME + " ")
                    .append(question.removed())
                    .append('=')
                    .append(name)
                    .append(" or ");
        }
        return text + REMOVED + " " + question.removed() + "; " + RENAME + " if that is a new name for the same)";
    }

    /**
     * Throws an exception if an answer has answered nothing, or if a new name is not that of a member.
     *
     * @param renames all renames that were made
     * @param after lock file that was made with these renames
     */
    void expectUsed(List<LockFile.Rename> renames, LockFile after) {
        for (String name : given.keySet()) {
            if (!used.contains(name)) {
                throw new SchemaException(option(name) + ": nothing of this name is gone while something like it is new"
                        + " (expected: the name of a member that is in the lock, and not in the classes)");
            }
        }
        for (LockFile.Rename rename : renames) {
            LockFile.Entry entry = after.entries().get(rename.type());
            boolean hasOld = entry != null && entry.has(rename.from());
            if (hasOld || entry == null || !entry.has(rename.to())) {
                throw new SchemaException(RENAME + " " + rename.type() + "." + rename.from() + "=" + rename.to() + ": "
                        + (hasOld ? "the class still has " + rename.from() : "the class has no " + rename.to())
                        + " (expected: the old name gone from the class, and the new one in it)");
            }
        }
    }

    private String option(String name) {
        String answer = given.getOrDefault(name, NONE);
        return answer.equals(NONE) ? REMOVED + " " + name : RENAME + " " + name + "=" + answer;
    }
}
