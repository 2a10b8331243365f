/* Intrusive doubly linked list: the links live in the structs, so adding and removing never allocates. */
#ifndef ABX_BASE_LIST_H
#define ABX_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *prev, *next;
};

#define LIST_ENTRY(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))
/* The loop body may remove `node` itself. */
#define LIST_EACH(head, node)                                                                                          \
    for (struct list *node = (head)->next, *node##_next = node->next; node != (head);                                  \
         node = node##_next, node##_next = node->next)

static inline void list_init(struct list *head)
{
    head->prev = head->next = head;
}

static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

static inline void list_append(struct list *head, struct list *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}

/* Leaves the node pointing at itself: removing twice is harmless, and list_empty(node) tells that it is in no list. */
static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

#endif
